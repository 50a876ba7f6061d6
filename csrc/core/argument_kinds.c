/* Whether PyTorch takes the kinds of a call's arguments (NOTE [Kinds of arguments] in dispatch/arguments/refusals.py).

   Here calls are let through whose arguments are plainly of the right kinds, which costs some nanoseconds; all others
   are judged by Python. Called with the GIL before a function's own code; of the arguments nothing is assumed. The tables
   that Python returns are copied and checked once, at a function's first call, before they are used as indices. */
#include "argument_kinds.h"
#include "core.h"
#include "kernel.h"

/* The same numbers as in dispatch/arguments/kinds.py. */
enum {
  TENSOR = 1 << 0,
  INT = 1 << 1,
  BOOL = 1 << 2,
  FLOAT = 1 << 3,
  COMPLEX = 1 << 4,
  STRING = 1 << 5,
  NONE = 1 << 6,
  INTS = 1 << 7,
  TENSORS = 1 << 8,
  FLOATS = 1 << 9,
  OTHER = 1 << 15,
};
#define MOST_ARGUMENTS 16
#define MOST_TYPES 8

struct signature {
  Py_ssize_t count, positional;
  int spreads; /* the list that comes first may be given as single numbers: x.view(2, 3) */
  unsigned masks[MOST_ARGUMENTS];
  PyObject *names[MOST_ARGUMENTS];
};

struct signatures {
  Py_ssize_t count;
  struct signature list[];
};

struct type_bit {
  PyTypeObject *type; /* lives for ever: calls may remember it */
  unsigned bit;
};
static PyObject *compiled, *refusal;
static struct type_bit types[MOST_TYPES];
static int type_count;

PyObject *core_kinds(PyObject *self, PyObject *args) {
  (void)self;
  PyObject *compile, *refuse, *listed;
  if (!PyArg_ParseTuple(args, "OOO!", &compile, &refuse, &PyTuple_Type, &listed)) return NULL;
  if (PyTuple_GET_SIZE(listed) > MOST_TYPES) return PyErr_Format(PyExc_ValueError, "at most %d types", MOST_TYPES);
  struct type_bit found[MOST_TYPES];
  const int count = (int)PyTuple_GET_SIZE(listed);
  for (int i = 0; i < count; i++)
    if (!PyArg_ParseTuple(PyTuple_GET_ITEM(listed, i), "O!I", &PyType_Type, &found[i].type, &found[i].bit)) return NULL;
  for (int i = 0; i < count; i++) {
    Py_INCREF(found[i].type);
    types[i] = found[i];
  }
  type_count = count;
  Py_XSETREF(compiled, Py_NewRef(compile));
  Py_XSETREF(refusal, Py_NewRef(refuse));
  Py_RETURN_NONE;
}

static inline int is_tensor(PyObject *value) {
  return Py_TYPE(value) == core.tensor || (type_count && PyType_IsSubtype(Py_TYPE(value), types[0].type));
}

static inline int fits_64_bits(PyObject *value) {
  int overflow;
  PyLong_AsLongLongAndOverflow(value, &overflow);
  return !overflow;
}

unsigned kinds_of_list(PyObject *list) {
  PyObject **items = PySequence_Fast_ITEMS(list);
  const Py_ssize_t count = PySequence_Fast_GET_SIZE(list);
  unsigned bits = INTS | TENSORS | FLOATS;
  for (Py_ssize_t i = 0; bits && i < count; i++) {
    PyObject *one = items[i];
    if (PyLong_CheckExact(one)) bits &= fits_64_bits(one) ? INTS | FLOATS : 0;
    else if (PyFloat_CheckExact(one)) bits &= FLOATS;
    else bits &= is_tensor(one) ? TENSORS : 0;
  }
  return bits ? bits : OTHER;
}

static unsigned kind_of(PyObject *value) {
  PyTypeObject *type = Py_TYPE(value);
  if (type == core.tensor) return TENSOR;
  if (type == &PyLong_Type) return fits_64_bits(value) ? INT : OTHER;
  if (type == &PyBool_Type) return BOOL;
  if (type == &PyFloat_Type) return FLOAT;
  if (value == Py_None) return NONE;
  if (type == &PyTuple_Type || type == &PyList_Type) return kinds_of_list(value);
  if (type == &PyUnicode_Type) return STRING;
  if (type == &PyComplex_Type) return COMPLEX;
  for (int i = 1; i < type_count; i++)
    if (type == types[i].type) return types[i].bit;
  if (PyTuple_Check(value)) return kinds_of_list(value);
  return is_tensor(value) ? TENSOR : OTHER;
}

/* --- a function's signatures ---------------------------------------------------------------------------------------- */

static int read_signature(PyObject *row, struct signature *to) {
  PyObject *masks, *names;
  if (!PyArg_ParseTuple(row, "O!O!np", &PyTuple_Type, &masks, &PyTuple_Type, &names, &to->positional, &to->spreads)) return -1;
  to->count = PyTuple_GET_SIZE(masks);
  for (Py_ssize_t i = 0; i < to->count; i++) {
    const unsigned long mask = PyLong_AsUnsignedLong(PyTuple_GET_ITEM(masks, i));
    if (mask == (unsigned long)-1 && PyErr_Occurred()) return -1;
    to->masks[i] = (unsigned)mask;
    to->names[i] = Py_NewRef(PyTuple_GET_ITEM(names, i));
    PyUnicode_InternInPlace(&to->names[i]);
  }
  if (to->positional >= (to->spreads ? 1 : 0) && to->positional <= to->count) return 0;
  PyErr_Format(PyExc_ValueError, "a signature of %zd parameters cannot have %zd positional ones", to->count, to->positional);
  return -1;
}

/* Whether all rows are as `read_signature` needs them. */
static int are_rows(PyObject *rows) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(rows); i++) {
    PyObject *row = PyTuple_GET_ITEM(rows, i);
    if (!PyTuple_Check(row) || PyTuple_GET_SIZE(row) != 4) return 0;
    PyObject *masks = PyTuple_GET_ITEM(row, 0), *names = PyTuple_GET_ITEM(row, 1);
    if (!PyTuple_Check(masks) || !PyTuple_Check(names) || PyTuple_GET_SIZE(masks) != PyTuple_GET_SIZE(names)) return 0;
    if (PyTuple_GET_SIZE(masks) > MOST_ARGUMENTS) return 0;
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(names); k++)
      if (!PyUnicode_CheckExact(PyTuple_GET_ITEM(names, k))) return 0;
  }
  return 1;
}

static void free_signatures(struct signatures *known) {
  if (!known) return;
  for (Py_ssize_t i = 0; i < known->count; i++)
    for (Py_ssize_t k = 0; k < known->list[i].count; k++) Py_XDECREF(known->list[i].names[k]);
  PyMem_Free(known);
}

void free_argument_check(struct argument_check *check) {
  free_signatures(check->known);
  check->known = NULL;
  Py_CLEAR(check->names);
}

static int make_signatures(struct argument_check *check, PyObject *function) {
  PyObject *make = Py_NewRef(compiled), *listed = PyObject_CallOneArg(make, function);
  Py_DECREF(make);
  if (!listed) return -1;
  const int is_list = PyList_Check(listed);
  PyObject *rows = is_list ? PyList_AsTuple(listed) : NULL; /* a list may change while it is read */
  Py_DECREF(listed);
  if (is_list && !rows) return -1;
  struct signatures *known = NULL;
  int failed = 0;
  if (rows && are_rows(rows)) {
    const Py_ssize_t count = PyTuple_GET_SIZE(rows);
    known = PyMem_Calloc(1, sizeof *known + (size_t)count * sizeof *known->list);
    if (!known) failed = (PyErr_NoMemory(), 1);
    for (Py_ssize_t i = 0; !failed && i < count; i++) {
      known->count = i + 1;
      failed = read_signature(PyTuple_GET_ITEM(rows, i), &known->list[i]) < 0;
    }
  }
  Py_XDECREF(rows);
  if (failed || check->is_made) {  /* another thread may have made them meanwhile */
    free_signatures(known);
    return failed ? -1 : 0;
  }
  check->known = known;
  check->is_made = 1;
  return 0;
}

/* --- a call --------------------------------------------------------------------------------------------------------- */

/* Whether a signature takes arguments of these kinds; which are missing is not asked. */
static int fits(const struct signature *one, const unsigned *kinds, Py_ssize_t count, PyObject *names) {
  Py_ssize_t given = count;
  if (count > one->positional) {
    const Py_ssize_t first = one->positional - 1;
    if (!one->spreads) return 0;
    for (Py_ssize_t i = first; i < count; i++)
      if (kinds[i] != INT) return 0;
    given = first;
  }
  for (Py_ssize_t i = 0; i < given; i++)
    if (!(one->masks[i] & kinds[i]) && !(one->spreads && i == one->positional - 1 && kinds[i] == INT)) return 0;
  const Py_ssize_t named = names ? PyTuple_GET_SIZE(names) : 0;
  for (Py_ssize_t k = 0; k < named; k++) {
    PyObject *name = PyTuple_GET_ITEM(names, k);
    Py_ssize_t at = given;
    while (at < one->count && one->names[at] != name) at++;
    if (at == one->count || !(one->masks[at] & kinds[count + k])) return 0;
  }
  return 1;
}

static int lives_for_ever(PyTypeObject *type) {
  if (type == core.tensor || !PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE)) return 1;
  for (int i = 0; i < type_count; i++)
    if (type == types[i].type) return 1;
  return 0;
}

static void remember(struct argument_check *check, PyObject *const *args, const unsigned *kinds, Py_ssize_t all, PyObject *names) {
  check->remembered = 0;
  if (all > MOST_REMEMBERED) return;
  for (Py_ssize_t i = 0; i < all; i++) {
    if (!lives_for_ever(Py_TYPE(args[i]))) return;
    check->last[i].type = Py_TYPE(args[i]);
    check->last[i].kind = kinds[i];
  }
  check->remembered = (int)all;
  PyObject *before = check->names;
  check->names = Py_XNewRef(names);
  Py_XDECREF(before);
}

static int refuse(PyObject *function, PyObject *const *args, Py_ssize_t count, PyObject *names) {
  PyObject *given, *options, *problem = NULL, *ask = Py_NewRef(refusal);
  if (!gather_arguments(args, count, names, &given, &options))
    problem = PyObject_CallFunctionObjArgs(ask, function, given, options, NULL);
  Py_DECREF(ask);
  Py_XDECREF(given);
  Py_XDECREF(options);
  if (problem && problem != Py_None) PyErr_SetObject((PyObject *)Py_TYPE(problem), problem);
  Py_XDECREF(problem);
  return PyErr_Occurred() ? -1 : 0;
}

int check_unlike_last(struct argument_check *check, PyObject *function, PyObject *const *args, Py_ssize_t count, PyObject *names) {
  if (!check->is_made && (!compiled || make_signatures(check, function) < 0)) return PyErr_Occurred() ? -1 : 0;
  const struct signatures *known = check->known;
  if (!known) return 0;
  const Py_ssize_t all = count + (names ? PyTuple_GET_SIZE(names) : 0);
  if (all <= MOST_ARGUMENTS) {
    unsigned kinds[MOST_ARGUMENTS];
    for (Py_ssize_t i = 0; i < all; i++) kinds[i] = kind_of(args[i]);
    for (Py_ssize_t i = 0; i < known->count; i++)
      if (fits(&known->list[i], kinds, count, names)) {
        remember(check, args, kinds, all, names);
        return 0;
      }
  }
  return refuse(function, args, count, names);
}
