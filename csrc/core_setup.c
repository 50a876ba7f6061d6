/* What the core must know of the Python side. */
#include "core.h"
#include <structmember.h>

Py_ssize_t slot_offset(PyObject *type, const char *name) {
  PyObject *found = PyObject_GetAttrString(type, name);
  Py_ssize_t offset = -1;
  if (found && Py_TYPE(found) == &PyMemberDescr_Type)
    offset = ((PyMemberDescrObject *)found)->d_member->offset;
  else if (found)
    PyErr_Format(PyExc_TypeError, "%R must have a slot named %s", type, name);
  Py_XDECREF(found);
  return offset;
}

/* The core has to be told all of these; each is kept for ever. */
PyObject *core_setup(PyObject *self, PyObject *named) {
  (void)self;
  struct {
    const char *name;
    void *at;
  } objects[] = {{"Tensor", &core.tensor},        {"TensorState", &core.tensor_state}, {"Node", &core.node},
                 {"Output", &core.output},        {"Storage", &core.storage},          {"LEAF", &core.leaf},
                 {"NOT_SAVED", &core.not_saved},  {"latest", &core.latest},            {"recording", &core.recording},
                 {"modes", &core.modes},          {"USER_FILES", &core.user_files},    {"user_frame", &core.user_frame},
                 {"add_to_grad", &core.add_to_grad}, {"say_where", &core.say_where},   {"prepare", &core.prepare},
                 {"odd_node", &core.odd_node}};
  for (size_t i = 0; i < sizeof objects / sizeof *objects; i++) {
    PyObject *found = PyDict_GetItemString(named, objects[i].name);
    if (!found) return PyErr_Format(PyExc_KeyError, "the core must be told %s", objects[i].name);
    *(PyObject **)objects[i].at = Py_NewRef(found);
  }
  struct {
    void *type;
    const char *name;
    Py_ssize_t *at;
  } slots[] = {{core.tensor, "_data", &core.data},
               {core.tensor, "_edge", &core.edge},
               {core.tensor, "_storage", &core.storage_slot},
               {core.tensor, "_view", &core.view},
               {core.node, "edges", &core.edges},
               {core.node, "sequence", &core.sequence},
               {core.node, "code", &core.code},
               {core.node, "lasti", &core.lasti},
               {core.node, "extra", &core.extra},
               {core.output, "node", &core.output_node},
               {core.output, "number", &core.output_number},
               {Py_TYPE(core.latest), "code", &core.latest_code},
               {Py_TYPE(core.recording), "everywhere", &core.everywhere}};
  for (size_t i = 0; i < sizeof slots / sizeof *slots; i++)
    if ((*slots[i].at = slot_offset(slots[i].type, slots[i].name)) < 0) return NULL;
  struct {
    const char *name;
    PyObject **at;
  } names[] = {{"version", &core.name_version},
               {"grad_enabled", &core.name_grad_enabled},
               {"inference", &core.name_inference},
               {"outputs", &core.name_outputs},
               {"wants_undefined", &core.name_wants_undefined},
               {"backward", &core.name_backward},
               {"free", &core.name_free},
               {"_hooks", &core.name_hooks},
               {"_post_accumulate_hooks", &core.name_post_accumulate_hooks},
               {"_accumulator", &core.name_accumulator},
               {"_grad", &core.name_grad}};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (!(*names[i].at = PyUnicode_InternFromString(names[i].name))) return NULL;
  core.ready = 1;
  Py_RETURN_NONE;
}
