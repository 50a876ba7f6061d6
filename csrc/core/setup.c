/* What the core must know of the Python side: classes, functions, where slots lie, names of attributes.

   Read once, when backlight is imported, with the GIL. Classes are tested, and slots are looked up in the classes whose
   objects will be read; what is missing or of another kind is refused, and then the core stays as it was. All else in
   All files of core rely on what is read here once `core.ready` is set. */
#include <stddef.h>

#include "core.h"

/* Objects by their place in a struct core; copied, since some are declared as types and some as objects. */
static PyObject *object_at(const struct core *from, size_t at) {
  PyObject *found;
  memcpy(&found, (const char *)from + at, sizeof found);
  return found;
}

static void put_object(struct core *to, size_t at, PyObject *object) { memcpy((char *)to + at, &object, sizeof object); }

static const struct {
  const char *name;
  size_t at;
} objects[] = {{"Tensor", offsetof(struct core, tensor)},
               {"TensorState", offsetof(struct core, tensor_state)},
               {"Node", offsetof(struct core, node)},
               {"Output", offsetof(struct core, output)},
               {"Storage", offsetof(struct core, storage)},
               {"LEAF", offsetof(struct core, leaf)},
               {"NOT_SAVED", offsetof(struct core, not_saved)},
               {"latest", offsetof(struct core, latest)},
               {"recording", offsetof(struct core, recording)},
               {"modes", offsetof(struct core, modes)},
               {"USER_FILES", offsetof(struct core, user_files)},
               {"user_frame", offsetof(struct core, user_frame)},
               {"add_to_grad", offsetof(struct core, add_to_grad)},
               {"say_where", offsetof(struct core, say_where)},
               {"prepare", offsetof(struct core, prepare)},
               {"nonfinite_node", offsetof(struct core, nonfinite_node)}},
  names[] = {{"version", offsetof(struct core, name_version)},
             {"grad_enabled", offsetof(struct core, name_grad_enabled)},
             {"inference", offsetof(struct core, name_inference)},
             {"outputs", offsetof(struct core, name_outputs)},
             {"wants_undefined", offsetof(struct core, name_wants_undefined)},
             {"backward", offsetof(struct core, name_backward)},
             {"free", offsetof(struct core, name_free)},
             {"_hooks", offsetof(struct core, name_hooks)},
             {"_post_accumulate_hooks", offsetof(struct core, name_post_accumulate_hooks)},
             {"_accumulator", offsetof(struct core, name_accumulator)},
             {"_grad", offsetof(struct core, name_grad)}};
#define COUNT(table) (sizeof table / sizeof *table)

/* Whether the objects are of the kinds that the core takes them for. */
static int are_usable(const struct core *found) {
  PyTypeObject *const classes[] = {found->tensor, found->tensor_state, found->node, found->output, found->storage};
  for (size_t i = 0; i < COUNT(classes); i++)
    if (!is_plain_class((PyObject *)classes[i])) return PyErr_Format(PyExc_TypeError, "the core must be given a class, got %R", classes[i]), 0;
  if (!PyType_IsSubtype(found->tensor, found->tensor_state) || !PyAnySet_Check(found->user_files)) {
    PyErr_SetString(PyExc_TypeError, "the core must be given a class of tensors with their state, and the user's files as a set");
    return 0;
  }
  return 1;
}

/* Find the slots. Objects are tested for the class of the state, a base of tensors: so that class must have their slots. */
static int read_slots(struct core *found) {
  const struct {
    const void *type;
    const char *name;
    size_t at;
  } slots[] = {{found->tensor_state, "_data", offsetof(struct core, data)},
               {found->tensor_state, "_edge", offsetof(struct core, edge)},
               {found->tensor_state, "_storage", offsetof(struct core, storage_slot)},
               {found->tensor_state, "_view", offsetof(struct core, view)},
               {found->node, "edges", offsetof(struct core, edges)},
               {found->node, "sequence", offsetof(struct core, sequence)},
               {found->node, "code", offsetof(struct core, code)},
               {found->node, "lasti", offsetof(struct core, lasti)},
               {found->node, "extra", offsetof(struct core, extra)},
               {found->output, "node", offsetof(struct core, output_node)},
               {found->output, "number", offsetof(struct core, output_number)},
               {Py_TYPE(found->latest), "code", offsetof(struct core, latest_code)},
               {Py_TYPE(found->recording), "everywhere", offsetof(struct core, everywhere)}};
  for (size_t i = 0; i < COUNT(slots); i++) {
    const Py_ssize_t offset = slot_offset((PyObject *)slots[i].type, slots[i].name);
    if (offset < 0) return -1;
    memcpy((char *)found + slots[i].at, &offset, sizeof offset);
    if (slots[i].type != found->tensor_state) continue;
    const Py_ssize_t own = slot_offset((PyObject *)found->tensor, slots[i].name);
    if (own >= 0 && own != offset)
      PyErr_Format(PyExc_TypeError, "%R must not hide the slot %s of its state", found->tensor, slots[i].name);
    if (own != offset) return -1;
  }
  return 0;
}

/* The core has to be given all of these, once; each is kept for ever. What was read is in `found`, also after a failure. */
static int read_core(PyObject *named, struct core *found) {
  for (size_t i = 0; i < COUNT(objects); i++) {
    PyObject *key = PyUnicode_FromString(objects[i].name), *object = key ? PyDict_GetItemWithError(named, key) : NULL;
    put_object(found, objects[i].at, Py_XNewRef(object));
    Py_XDECREF(key);
    if (!object && !PyErr_Occurred()) PyErr_Format(PyExc_KeyError, "the core must be given %s", objects[i].name);
    if (!object) return -1;
  }
  if (!are_usable(found) || read_slots(found) < 0) return -1;
  for (size_t i = 0; i < COUNT(names); i++) {
    PyObject *name = PyUnicode_InternFromString(names[i].name);
    if (!name) return -1;
    put_object(found, names[i].at, name);
  }
  return 0;
}

static void release(const struct core *found) {
  for (size_t i = 0; i < COUNT(objects); i++) Py_XDECREF(object_at(found, objects[i].at));
  for (size_t i = 0; i < COUNT(names); i++) Py_XDECREF(object_at(found, names[i].at));
}

PyObject *core_setup(PyObject *self, PyObject *named) {
  (void)self;
  if (core.ready) return PyErr_Format(PyExc_RuntimeError, "the core is set up already");
  if (!PyDict_Check(named)) return PyErr_Format(PyExc_TypeError, "the core must be given a dict, got %R", named);
  struct core found = {0};
  int failed = read_core(named, &found) < 0;
  if (!failed && core.ready) { /* by Python code that ran meanwhile */
    PyErr_Format(PyExc_RuntimeError, "the core is set up already");
    failed = 1;
  }
  if (failed) {
    release(&found);
    return NULL;
  }
  found.intercepts = core.intercepts, found.dispatch = core.dispatch, found.unhandled = core.unhandled; /* may be there before */
  found.dispatches_ops = core.dispatches_ops, found.only_classes = core.only_classes, found.only_functions = core.only_functions;
  found.layout = core.layout, found.only_layouts = core.only_layouts;
  found.returned = core.returned, found.mark = core.mark;
  found.nonfinite_op = core.nonfinite_op, found.nonfinite_wanted = core.nonfinite_wanted;
  core = found;
  core.ready = 1;
  Py_RETURN_NONE;
}
