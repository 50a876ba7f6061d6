/* What the core must know of the Python side. */
#include "core.h"

/* A class that Python code made, whose objects the core makes and takes apart. */
static int is_class(PyTypeObject *type) {
  return PyType_Check((PyObject *)type) && PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE);
}

/* Whether the objects are of the kinds that the core takes them for. */
static int are_usable(const struct core *core) {
  PyTypeObject *const classes[] = {core->tensor, core->tensor_state, core->node, core->output, core->storage};
  for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
    if (!is_class(classes[i])) return PyErr_Format(PyExc_TypeError, "the core must be given a class, got %R", classes[i]), 0;
  if (!PyType_IsSubtype(core->tensor, core->tensor_state) || !PyAnySet_Check(core->user_files)) {
    PyErr_SetString(PyExc_TypeError, "the core must be given a class of tensors with their state, and the user's files as a set");
    return 0;
  }
  return 1;
}

/* The core has to be given all of these, once; each is kept for ever. */
static int read_core(PyObject *named, struct core *core) {
  struct {
    const char *name;
    void *at;
  } objects[] = {{"Tensor", &core->tensor},        {"TensorState", &core->tensor_state}, {"Node", &core->node},
                 {"Output", &core->output},        {"Storage", &core->storage},          {"LEAF", &core->leaf},
                 {"NOT_SAVED", &core->not_saved},  {"latest", &core->latest},            {"recording", &core->recording},
                 {"modes", &core->modes},          {"USER_FILES", &core->user_files},    {"user_frame", &core->user_frame},
                 {"add_to_grad", &core->add_to_grad}, {"say_where", &core->say_where},   {"prepare", &core->prepare},
                 {"odd_node", &core->odd_node}};
  for (size_t i = 0; i < sizeof objects / sizeof *objects; i++) {
    PyObject *found = PyDict_GetItemString(named, objects[i].name);
    if (!found) return PyErr_Format(PyExc_KeyError, "the core must be given %s", objects[i].name), -1;
    *(PyObject **)objects[i].at = found;
  }
  if (!are_usable(core)) return -1;
  struct {
    void *type;
    const char *name;
    Py_ssize_t *at;
  } slots[] = {{core->tensor, "_data", &core->data},
               {core->tensor, "_edge", &core->edge},
               {core->tensor, "_storage", &core->storage_slot},
               {core->tensor, "_view", &core->view},
               {core->node, "edges", &core->edges},
               {core->node, "sequence", &core->sequence},
               {core->node, "code", &core->code},
               {core->node, "lasti", &core->lasti},
               {core->node, "extra", &core->extra},
               {core->output, "node", &core->output_node},
               {core->output, "number", &core->output_number},
               {Py_TYPE(core->latest), "code", &core->latest_code},
               {Py_TYPE(core->recording), "everywhere", &core->everywhere}};
  for (size_t i = 0; i < sizeof slots / sizeof *slots; i++)
    if ((*slots[i].at = slot_offset(slots[i].type, slots[i].name)) < 0) return -1;
  struct {
    const char *name;
    PyObject **at;
  } names[] = {{"version", &core->name_version},
               {"grad_enabled", &core->name_grad_enabled},
               {"inference", &core->name_inference},
               {"outputs", &core->name_outputs},
               {"wants_undefined", &core->name_wants_undefined},
               {"backward", &core->name_backward},
               {"free", &core->name_free},
               {"_hooks", &core->name_hooks},
               {"_post_accumulate_hooks", &core->name_post_accumulate_hooks},
               {"_accumulator", &core->name_accumulator},
               {"_grad", &core->name_grad}};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (!(*names[i].at = PyUnicode_InternFromString(names[i].name))) return -1;
  for (size_t i = 0; i < sizeof objects / sizeof *objects; i++) Py_INCREF(*(PyObject **)objects[i].at);
  return 0;
}

PyObject *core_setup(PyObject *self, PyObject *named) {
  (void)self;
  if (core.ready) return PyErr_Format(PyExc_RuntimeError, "the core is set up already");
  if (!PyDict_Check(named)) return PyErr_Format(PyExc_TypeError, "the core must be given a dict, got %R", named);
  struct core found = core; /* what is reported to may be there before */
  if (read_core(named, &found) < 0) return NULL;
  core = found;
  core.ready = 1;
  Py_RETURN_NONE;
}
