/* Plans: what Python declares of an op (codegen/core_ops.py), read and checked once, when the op is first called.

   Every count, register, slot and program is checked here against the arrays that they index; core/op.c, core/derive.c
   and programs.c rely on it and check none of that again. What does not fit is refused with an exception, and whatever was
   read by then is freed. Called with the GIL. */
#include "core.h"

#if PY_VERSION_HEX >= 0x030C0000
#define OBJECT_SLOT Py_T_OBJECT_EX
#else
#include <structmember.h>
#define OBJECT_SLOT T_OBJECT_EX
#endif

/* The descriptor must be one of the type itself or of its bases: another class's offset lies outside its objects. */
Py_ssize_t slot_offset(PyObject *type, const char *name) {
  PyObject *found = PyObject_GetAttrString(type, name);
  Py_ssize_t offset = -1;
  if (!found) return -1;
  if (PyType_Check(type) && Py_TYPE(found) == &PyMemberDescr_Type && PyType_IsSubtype((PyTypeObject *)type, PyDescr_TYPE(found)) &&
      ((PyMemberDescrObject *)found)->d_member->type == OBJECT_SLOT)
    offset = ((PyMemberDescrObject *)found)->d_member->offset;
  else
    PyErr_Format(PyExc_TypeError, "%R must have a slot named %s", type, name);
  Py_DECREF(found);
  return offset;
}

/* Python code made it and all that it inherits from but object: no dict, list or number, which an empty object is not. */
int is_plain_class(PyObject *type) {
  PyObject *bases = PyType_Check(type) ? ((PyTypeObject *)type)->tp_mro : NULL;
  if (!bases || !PyTuple_Check(bases) || type == (PyObject *)&PyBaseObject_Type) return 0;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(bases); i++) {
    PyObject *base = PyTuple_GET_ITEM(bases, i);
    if (base == (PyObject *)&PyBaseObject_Type) continue;
    if (!PyType_Check(base) || !PyType_HasFeature((PyTypeObject *)base, Py_TPFLAGS_HEAPTYPE)) return 0;
  }
  return 1;
}

static int refused(const char *rule) {
  PyErr_Format(PyExc_ValueError, "a plan must %s", rule);
  return -1;
}

/* How many of its three registers an instruction reads. */
static int operands_of(enum instruction instruction) {
  switch (instruction) {
    case DO_NEG: case DO_EXP: case DO_EXPM1: case DO_TANH: case DO_SIGMOID: case DO_LOG: case DO_LOG1P: case DO_SQRT:
    case DO_ABS: case DO_NOT: case DO_COPY: return 1;
    case DO_WHERE: return 3;
    default: return 2;
  }
}

/* Whether every instruction exists, reads only registers that hold something by then, and writes into scratch. */
static int is_runnable(const struct program *program) {
  const int first_scratch = program->sources + program->constants, registers = first_scratch + MOST_SCRATCH;
  unsigned written = 0; /* scratch registers, as bits */
  for (int s = 0; s < program->steps; s++) {
    const unsigned char *step = program->step[s];
    if (step[0] >= DO_NOTHING) return 0;
    for (int k = 2; k < WORDS; k++)
      if (step[k] >= registers) return 0;
    for (int k = 2; k < 2 + operands_of(step[0]); k++)
      if (step[k] >= first_scratch && !(written >> (step[k] - first_scratch) & 1)) return 0;
    if (s == program->steps - 1) break; /* the last one writes the result, whatever register it names */
    if (step[1] < first_scratch || step[1] >= registers) return 0;
    written |= 1u << (step[1] - first_scratch);
  }
  return 1;
}

static int read_program(PyObject *given, struct program *program) {
  PyObject *steps, *constants;
  if (!PyArg_ParseTuple(given, "iSO!", &program->sources, &steps, &PyTuple_Type, &constants)) return -1;
  const Py_ssize_t bytes = PyBytes_GET_SIZE(steps), count = PyTuple_GET_SIZE(constants);
  if (program->sources < 0 || program->sources > MOST_SOURCES || count > MOST_CONSTANTS || !bytes || bytes % WORDS ||
      bytes > (Py_ssize_t)sizeof program->step)
    return refused("have programs that fit their registers");
  program->constants = (int)count;
  program->steps = (int)(bytes / WORDS);
  memcpy(program->step, PyBytes_AS_STRING(steps), (size_t)bytes);
  for (int k = 0; k < program->constants; k++) {
    program->constant[k] = PyFloat_AsDouble(PyTuple_GET_ITEM(constants, k));
    if (program->constant[k] == -1 && PyErr_Occurred()) return -1;
  }
  return is_runnable(program) ? 0 : refused("have programs whose instructions read and write registers that exist");
}

/* `saved`: the inputs that a node keeps, as bits; `out`: whether it keeps the output. */
static int read_derivative(PyObject *given, struct derivative *rule, unsigned saved, int out) {
  PyObject *sources, *program;
  if (given == Py_None) {
    rule->passes = 1;
    return 0;
  }
  if (!PyTuple_Check(given)) return refused("have derivatives that are tuples or None");
  if (!PyArg_ParseTuple(given, "O!O!", &PyTuple_Type, &sources, &PyTuple_Type, &program)) return -1;
  if (read_program(program, &rule->program) < 0) return -1;
  if (PyTuple_GET_SIZE(sources) != rule->program.sources) return refused("name every source of a derivative");
  for (int s = 0; s < rule->program.sources; s++) {
    long from = PyLong_AsLong(PyTuple_GET_ITEM(sources, s));
    if (from == -1 && PyErr_Occurred()) return -1;
    const int kept = from >= 0 && from < MOST_INPUTS && saved >> from & 1;
    if (from != SOURCE_GRAD && !(from == SOURCE_OUT && out) && !kept) return refused("keep what its derivatives read");
    rule->source[s] = (int)from;
  }
  return 0;
}

/* Read (number of the input, users, its slot, its version's slot) of each input that a node keeps. */
static int read_saved_inputs(PyObject *saved, struct plan *plan, unsigned *found) {
  for (Py_ssize_t s = 0; s < PyTuple_GET_SIZE(saved); s++) {
    PyObject *one = PyTuple_GET_ITEM(saved, s);
    int input;
    unsigned users;
    const char *slot, *version;
    if (!PyTuple_Check(one)) return refused("have tuples of what it keeps");
    if (!PyArg_ParseTuple(one, "iIss", &input, &users, &slot, &version)) return -1;
    if (input < 0 || input >= plan->inputs || *found >> input & 1) return refused("keep inputs that exist, each once");
    *found |= 1u << input;
    plan->saves[input] = 1;
    plan->users[input] = users;
    if ((plan->input_slot[input] = slot_offset((PyObject *)plan->node_class, slot)) < 0) return -1;
    if ((plan->version_slot[input] = slot_offset((PyObject *)plan->node_class, version)) < 0) return -1;
  }
  return 0;
}

static int read_constants(PyObject *constants, struct plan *plan) {
  if (PyTuple_GET_SIZE(constants) > MOST_INPUTS) return refused("keep no more options than it has room for");
  for (Py_ssize_t c = 0; c < PyTuple_GET_SIZE(constants); c++) {
    PyObject *one = PyTuple_GET_ITEM(constants, c), *value;
    const char *slot;
    if (!PyTuple_Check(one)) return refused("have tuples of options");
    if (!PyArg_ParseTuple(one, "sO", &slot, &value)) return -1;
    if ((plan->constant_slot[c] = slot_offset((PyObject *)plan->node_class, slot)) < 0) return -1;
    plan->constant[plan->constants++] = Py_NewRef(value);
  }
  return 0;
}

static int read_edges(PyObject *edges, struct plan *plan, unsigned saved) {
  if (PyTuple_GET_SIZE(edges) > MOST_INPUTS) return refused("have no more edges than inputs");
  for (Py_ssize_t e = 0; e < PyTuple_GET_SIZE(edges); e++) {
    PyObject *one = PyTuple_GET_ITEM(edges, e), *rule;
    if (!PyTuple_Check(one)) return refused("have tuples of edges");
    if (!PyArg_ParseTuple(one, "iO", &plan->edge_input[e], &rule)) return -1;
    if (plan->edge_input[e] < 0 || plan->edge_input[e] >= plan->inputs) return refused("have edges to inputs that exist");
    if (read_derivative(rule, &plan->derivative[e], saved, plan->saves_out) < 0) return -1;
    plan->differentiable++;
  }
  return 0;
}

void plan_dispose(struct plan *plan) {
  for (int c = 0; c < plan->constants; c++) Py_DECREF(plan->constant[c]);
  Py_XDECREF(plan->node_class);
  PyMem_Free(plan);
}

/* What node classes have, and C reads by offset. */
static int read_node_class(PyObject *node_class, struct plan *plan, PyObject *saved, int broadcasts, PyObject *constants,
                           unsigned *kept) {
  if (!is_plain_class(node_class) || !PyType_IsSubtype((PyTypeObject *)node_class, core.node))
    return refused("have a class of nodes");
  plan->node_class = (PyTypeObject *)Py_NewRef(node_class);
  if (broadcasts && (plan->restore_slot = slot_offset(node_class, "broadcast_restore")) < 0) return -1;
  if (read_saved_inputs(saved, plan, kept) < 0) return -1;
  if (plan->saves_out && ((plan->out_slot = slot_offset(node_class, "out")) < 0 ||
                          (plan->out_storage = slot_offset(node_class, "out_storage")) < 0 ||
                          (plan->out_version = slot_offset(node_class, "out_version")) < 0))
    return -1;
  return read_constants(constants, plan);
}

/* (inputs, forward, node class or None, edges, saved, whether the output is, whether it broadcasts, constants) */
struct plan *plan_read(PyObject *given) {
  PyObject *forward, *node_class, *edges, *saved, *constants;
  int inputs, out, broadcasts;
  if (!PyTuple_Check(given)) return refused("be a tuple"), NULL;
  if (!PyArg_ParseTuple(given, "iO!OO!O!ppO!", &inputs, &PyTuple_Type, &forward, &node_class, &PyTuple_Type, &edges,
                        &PyTuple_Type, &saved, &out, &broadcasts, &PyTuple_Type, &constants))
    return NULL;
  struct plan *plan = PyMem_Calloc(1, sizeof *plan);
  if (!plan) return (struct plan *)PyErr_NoMemory();
  unsigned kept = 0;
  plan->inputs = inputs;
  plan->saves_out = out;
  plan->restore_slot = broadcasts ? -1 : 0;
  int failed = inputs < 1 || inputs > MOST_INPUTS ? refused("have one to four inputs") : read_program(forward, &plan->forward);
  if (!failed && plan->forward.sources > inputs) failed = refused("have a forward that reads its inputs only");
  if (!failed && node_class != Py_None) failed = read_node_class(node_class, plan, saved, broadcasts, constants, &kept);
  if (!failed && node_class == Py_None && PyTuple_GET_SIZE(edges)) failed = refused("have a class of nodes for its edges");
  if (!failed) failed = read_edges(edges, plan, kept);
  if (!failed) return plan;
  plan_dispose(plan);
  return NULL;
}

/* Plans by node class: few hundred at most, never removed, so a table with open addresses serves. */
#define PLACES 2048 /* a power of two: `place_of` takes the upper 11 bits of the product */
static struct {
  PyTypeObject *node_class;
  struct plan *plan;
} known[PLACES];
static int known_count;

static size_t place_of(PyTypeObject *type) {
  size_t at = ((uintptr_t)type >> 4) * 0x9E3779B97F4A7C15ull >> 53;
  while (known[at].node_class && known[at].node_class != type) at = (at + 1) % PLACES;
  return at;
}

struct plan *plan_of_class(PyTypeObject *node_class) { return known[place_of(node_class)].plan; }

/* Half of the table stays free: beyond that, nodes are run in Python. */
int plan_keep(struct plan *plan) {
  if (!plan->node_class) return 0;
  size_t at = place_of(plan->node_class);
  if (!known[at].node_class && known_count >= PLACES / 2) return 0;
  known_count += !known[at].node_class;
  known[at].node_class = plan->node_class;
  known[at].plan = plan;
  return 1;
}
