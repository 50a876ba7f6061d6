/* Adds an engine's nodes to a record of the lens, as lens/records/building.py does, whose containers it shares.

   NOTE [The builder in C]
   `Builder` in Python is the reference. The methods here return None for what they leave to it, before
   anything was changed but for leaves that were added, which it finds. PyTorch is not linked: its nodes and tensors are
   read by attributes. Our own are read by slots, after a test of their type (NOTE [Slots]). Python code may run
   wherever an attribute is read or something is called: what is read from a container is held while that may happen. */
#include <stddef.h>

#include "core.h"
#include "structmember.h"

#define MOST_NEW 1024 /* nodes added by one call; more are left to Python */

/* The slots of the record's classes, in the order of their fields; looked up once. */
enum {
  N_ID,
  N_KIND,
  N_TYPE,
  N_LABEL,
  N_NAME,
  N_PARAMETER,
  N_EDGES,
  N_OUTPUTS,
  N_MODULE,
  N_MODULE_TYPE,
  N_PLACE,
  N_STACK,
  N_SAVED,
  N_HOOKS,
  N_VERSION,
  N_ROOT,
  N_ORDER,
  N_SECONDS,
  N_GRAD,
  N_UPDATED,
  N_OPTIONS,
  N_SLOTS
};
enum { E_TO, E_OUTPUT, E_NAME, E_FORMULA, E_SLOTS };
enum { S_NAME, S_SUMMARY, S_BYTES, S_MEMORY, S_OF, S_VERSION, S_WRITTEN, S_SLOTS };
enum { V_SHAPE, V_SLOTS };
static const char *const node_names[] = {
    "id",    "kind",  "type",  "label",   "name", "parameter", "edges",   "outputs", "module",  "module_type", "place",
    "stack", "saved", "hooks", "version", "root", "order",     "seconds", "grad",    "updated", "options"};
static const char *const edge_names[] = {"to", "output", "name", "formula"};
static const char *const saved_names[] = {"name", "summary", "bytes", "memory", "of", "version", "written"};
static const char *const summary_names[] = {"shape"};

struct record_class {
  PyTypeObject *type;
  Py_ssize_t slot[N_SLOTS];
};
static struct record_class node_class, edge_class, saved_class, summary_class;

static PyObject *name_metadata, *name_next_functions, *name_variable, *name_sequence_nr, *name_unpack_hook,
    *name_requires_grad;
static PyObject *name_grad_fn, *name_output_nr, *name_version, *name_layout, *name_untyped_storage, *name_cdata,
    *name_nbytes;
static PyObject *name_shape, *name_dtype, *op, *given, *leaf, *accumulate_grad, *empty;

/* What a builder is given, by name: the containers of the Python one, and what is called for the rest. */
typedef struct {
  PyObject_HEAD PyObject *ids, *leaves, *memories, *written, *holders, *keys, *made_in, *pinned, *nodes,
      *kinds; /* containers */
  PyObject *kind_of, *summary, *unread, *kept_by, *memory_of, *options_of, *leaf_class,
      *key;                                  /* functions, a class, a name */
  PyObject *next_key, *strided, *is_wrapped; /* of PyTorch's engine, or None */
  int of_torch, shapes_only;
  Py_ssize_t limit;
} Builder;

enum { IS_ANY, IS_DICT, IS_LIST, IS_SET };
static const struct {
  const char *name;
  size_t at;
  int is;
} given_fields[] = {{"ids", offsetof(Builder, ids), IS_DICT},
                    {"leaves", offsetof(Builder, leaves), IS_DICT},
                    {"memories", offsetof(Builder, memories), IS_DICT},
                    {"written", offsetof(Builder, written), IS_LIST},
                    {"holders", offsetof(Builder, holders), IS_LIST},
                    {"keys", offsetof(Builder, keys), IS_LIST},
                    {"made_in", offsetof(Builder, made_in), IS_DICT},
                    {"nodes", offsetof(Builder, nodes), IS_LIST},
                    {"kinds", offsetof(Builder, kinds), IS_DICT},
                    {"kind_of", offsetof(Builder, kind_of), IS_ANY},
                    {"pinned", offsetof(Builder, pinned), IS_SET},
                    {"summary", offsetof(Builder, summary), IS_ANY},
                    {"unread", offsetof(Builder, unread), IS_ANY},
                    {"kept_by", offsetof(Builder, kept_by), IS_ANY},
                    {"memory_of", offsetof(Builder, memory_of), IS_ANY},
                    {"options_of", offsetof(Builder, options_of), IS_ANY},
                    {"leaf_class", offsetof(Builder, leaf_class), IS_ANY},
                    {"key", offsetof(Builder, key), IS_ANY},
                    {"next_key", offsetof(Builder, next_key), IS_ANY},
                    {"strided", offsetof(Builder, strided), IS_ANY},
                    {"is_wrapped", offsetof(Builder, is_wrapped), IS_ANY}};
#define COUNT(table) (sizeof table / sizeof *table)
#define FIELD(self, i) (*(PyObject **)((char *)(self) + given_fields[i].at))

static int intern_all(void) {
  const struct {
    PyObject **at;
    const char *name;
  } names[] = {{&name_metadata, "metadata"},
               {&name_next_functions, "next_functions"},
               {&name_variable, "variable"},
               {&name_sequence_nr, "_sequence_nr"},
               {&name_unpack_hook, "unpack_hook"},
               {&name_requires_grad, "requires_grad"},
               {&name_grad_fn, "grad_fn"},
               {&name_output_nr, "output_nr"},
               {&name_version, "_version"},
               {&name_layout, "layout"},
               {&name_untyped_storage, "untyped_storage"},
               {&name_cdata, "_cdata"},
               {&name_nbytes, "nbytes"},
               {&name_shape, "shape"},
               {&name_dtype, "dtype"},
               {&op, "op"},
               {&given, "given"},
               {&leaf, "leaf"},
               {&accumulate_grad, "AccumulateGrad"},
               {&empty, ""}};
  for (size_t i = 0; i < COUNT(names); i++)
    if (!*names[i].at && !(*names[i].at = PyUnicode_InternFromString(names[i].name))) return -1;
  return 0;
}

static int read_class(struct record_class *to, PyObject *type, const char *const *names, int count) {
  if ((PyObject *)to->type == type) return 0;
  if (!is_plain_class(type))
    return PyErr_Format(PyExc_TypeError, "a record must be made of classes with slots, got %R", type), -1;
  struct record_class found = {(PyTypeObject *)type, {0}};
  for (int i = 0; i < count; i++)
    if ((found.slot[i] = slot_offset(type, names[i])) < 0) return -1;
  PyObject *old = (PyObject *)to->type;
  Py_INCREF(type);
  *to = found;
  Py_XDECREF(old);
  return 0;
}

/* RecordBuilder(classes, limit, shapes_only, named): `classes` are Node, Edge, SavedTensor and Summary. */
static int builder_init(Builder *self, PyObject *args, PyObject *options) {
  PyObject *node, *edge, *saved, *summary, *named;
  if (options && PyDict_GET_SIZE(options)) return PyErr_Format(PyExc_TypeError, "RecordBuilder takes no keywords"), -1;
  if (!core.ready) return PyErr_Format(PyExc_RuntimeError, "the core is not set up"), -1;
  if (!PyArg_ParseTuple(args, "(OOOO)npO!", &node, &edge, &saved, &summary, &self->limit, &self->shapes_only,
                        &PyDict_Type, &named))
    return -1;
  if (intern_all() < 0 || read_class(&node_class, node, node_names, N_SLOTS) < 0 ||
      read_class(&edge_class, edge, edge_names, E_SLOTS) < 0 ||
      read_class(&saved_class, saved, saved_names, S_SLOTS) < 0 ||
      read_class(&summary_class, summary, summary_names, V_SLOTS) < 0)
    return -1;
  for (size_t i = 0; i < COUNT(given_fields); i++) {
    PyObject *object = PyDict_GetItemString(named, given_fields[i].name);
    const int is = given_fields[i].is;
    int wrong = !object || (is == IS_DICT && !PyDict_CheckExact(object)) ||
                (is == IS_LIST && !PyList_CheckExact(object)) || (is == IS_SET && !PySet_CheckExact(object));
    if (wrong)
      return PyErr_Format(PyExc_TypeError, "RecordBuilder must be given %s of its kind", given_fields[i].name), -1;
    Py_XSETREF(FIELD(self, i), Py_NewRef(object));
  }
  self->of_torch = self->next_key != Py_None;
  return 0;
}

/* --- what an engine says ------------------------------------------------------------------------------------------ */

/* The number that only this node has; a new reference. */
static PyObject *key_of(Builder *self, PyObject *node) {
  if (!self->of_torch) {
    PyObject *key = PyObject_TypeCheck(node, core.node) ? SLOT(node, core.sequence) : NULL;
    return key ? Py_NewRef(key) : PyErr_Format(PyExc_TypeError, "a node must have a number, got %R", node);
  }
  PyObject *metadata = PyObject_GetAttr(node, name_metadata), *key = NULL;
  if (metadata && !PyDict_Check(metadata)) PyErr_Format(PyExc_TypeError, "the metadata of a node must be a dict");
  if (metadata && PyDict_Check(metadata)) {
    key = Py_XNewRef(PyDict_GetItemWithError(metadata, self->key));
    if (!key && !PyErr_Occurred()) {
      key = PyObject_CallNoArgs(self->next_key);
      if (key && PyDict_SetItem(metadata, self->key, key) < 0) Py_CLEAR(key);
    }
  }
  Py_XDECREF(metadata);
  return key;
}

/* Where an edge leads. */
struct input {
  PyObject *end;    /* a node, a leaf, or NULL for none; held */
  PyObject *key;    /* of a node; held */
  PyObject *number; /* which output; held */
  int pending;      /* the place of a node that is added by the same call, -1 of others */
  int is_leaf;
};

struct added {
  PyObject *node, *key; /* held */
  long long sequence;
  struct input *inputs;
  Py_ssize_t count;
};

static void drop_added(struct added *one) {
  for (Py_ssize_t i = 0; i < one->count; i++) {
    Py_XDECREF(one->inputs[i].end);
    Py_XDECREF(one->inputs[i].key);
    Py_XDECREF(one->inputs[i].number);
  }
  PyMem_Free(one->inputs);
  Py_XDECREF(one->node);
  Py_XDECREF(one->key);
}

static PyObject *zero(void) { return PyLong_FromLong(0); }

/* Read one edge of PyTorch's: (node or None, number). */
static int read_torch_edge(Builder *self, PyObject *edge, struct input *to) {
  if (!PyTuple_Check(edge) || PyTuple_GET_SIZE(edge) != 2)
    return PyErr_Format(PyExc_TypeError, "an edge must be a pair, got %R", edge), -1;
  PyObject *node = PyTuple_GET_ITEM(edge, 0);
  to->number = Py_NewRef(PyTuple_GET_ITEM(edge, 1));
  if (node == Py_None) return 0;
  to->is_leaf = (PyObject *)Py_TYPE(node) == self->leaf_class;
  to->end = to->is_leaf ? PyObject_GetAttr(node, name_variable) : Py_NewRef(node);
  return to->end ? 0 : -1;
}

/* Read one edge of ours: None, a leaf, an Output or a node. */
static int read_own_edge(PyObject *edge, struct input *to) {
  if (!edge || edge == Py_None) return (to->number = zero()) ? 0 : -1;
  if (Py_TYPE(edge) == core.output) {
    PyObject *node = SLOT(edge, core.output_node), *number = SLOT(edge, core.output_number);
    if (!node || !number) return PyErr_Format(PyExc_TypeError, "an Output must have a node and a number"), -1;
    to->end = Py_NewRef(node), to->number = Py_NewRef(number);
    return 0;
  }
  to->is_leaf = PyObject_TypeCheck(edge, core.tensor_state);
  to->end = Py_NewRef(edge);
  return (to->number = zero()) ? 0 : -1;
}

static int read_inputs(Builder *self, struct added *one) {
  PyObject *edges =
      self->of_torch ? PyObject_GetAttr(one->node, name_next_functions) : Py_XNewRef(SLOT(one->node, core.edges));
  if (!edges || !PyTuple_Check(edges)) {
    if (edges || !PyErr_Occurred()) PyErr_Format(PyExc_TypeError, "the edges of a node must be a tuple");
    Py_XDECREF(edges);
    return -1;
  }
  Py_ssize_t count = PyTuple_GET_SIZE(edges);
  one->inputs = PyMem_Calloc(count ? (size_t)count : 1, sizeof *one->inputs);
  int failed = !one->inputs;
  if (failed) PyErr_NoMemory();
  for (Py_ssize_t i = 0; !failed && i < count; i++) {
    struct input *to = &one->inputs[one->count++];
    to->pending = -1;
    PyObject *edge = PyTuple_GET_ITEM(edges, i);
    failed = (self->of_torch ? read_torch_edge(self, edge, to) : read_own_edge(edge, to)) < 0;
    if (!failed && to->end && !to->is_leaf) failed = !(to->key = key_of(self, to->end));
  }
  Py_DECREF(edges);
  return failed ? -1 : 0;
}

static int read_sequence(Builder *self, struct added *one) {
  PyObject *number = self->of_torch ? PyObject_CallMethodNoArgs(one->node, name_sequence_nr) : Py_NewRef(one->key);
  if (!number) return -1;
  int overflow;
  one->sequence = PyLong_AsLongLongAndOverflow(number, &overflow);
  Py_DECREF(number);
  if (overflow) one->sequence = overflow > 0 ? LLONG_MAX : LLONG_MIN;
  return PyErr_Occurred() ? -1 : 0;
}

/* Whether a tensor gets a gradient: 1, 0 or -1. */
static int requires_grad(Builder *self, PyObject *tensor) {
  if (!self->of_torch) return SLOT(tensor, core.edge) && SLOT(tensor, core.edge) != Py_None;
  PyObject *found = PyObject_GetAttr(tensor, name_requires_grad);
  int is = found ? PyObject_IsTrue(found) : -1;
  Py_XDECREF(found);
  return is;
}

/* How often a tensor's memory was written to: a new reference. */
static PyObject *version_of(Builder *self, PyObject *tensor) {
  if (self->of_torch) {
    PyObject *found = PyObject_GetAttr(tensor, name_version);
    if (found || !PyErr_ExceptionMatches(PyExc_RuntimeError)) return found;
    PyErr_Clear(); /* an inference tensor */
    return zero();
  }
  PyObject *storage = SLOT(tensor, core.storage_slot);
  if (!storage || !PyObject_TypeCheck(storage, core.storage)) return zero(); /* none yet, or one of inference mode */
  Py_INCREF(storage);
  PyObject *found = PyObject_GetAttr(storage, core.name_version);
  Py_DECREF(storage);
  return found;
}

/* (key of a tensor's memory, its bytes), asked of Python. */
static PyObject *memory_from_python(Builder *self, PyObject *tensor) {
  PyObject *found = PyObject_CallOneArg(self->memory_of, tensor);
  if (found && (!PyTuple_Check(found) || PyTuple_GET_SIZE(found) != 2)) {
    PyErr_Format(PyExc_TypeError, "memory_of must return a pair, got %R", found);
    Py_CLEAR(found);
  }
  return found;
}

static PyObject *memory_of(Builder *self, PyObject *tensor) {
  if (!self->of_torch) {
    PyObject *data = SLOT(tensor, core.data);
    if (!data || !PyArray_CheckExact(data)) return memory_from_python(self, tensor);
    PyArrayObject *whole = (PyArrayObject *)data;
    while (PyArray_BASE(whole) && PyArray_Check(PyArray_BASE(whole))) whole = (PyArrayObject *)PyArray_BASE(whole);
    return Py_BuildValue("(nn)", (Py_ssize_t)PyArray_DATA(whole), (Py_ssize_t)PyArray_NBYTES(whole));
  }
  PyObject *layout = PyObject_GetAttr(tensor, name_layout),
           *wrapped = layout ? PyObject_CallOneArg(self->is_wrapped, tensor) : NULL;
  const int plain = wrapped && layout == self->strided && wrapped == Py_False;
  PyObject *storage = plain ? PyObject_CallMethodNoArgs(tensor, name_untyped_storage) : NULL, *key = NULL,
           *bytes = NULL, *found = NULL;
  if (storage && (key = PyObject_GetAttr(storage, name_cdata)) &&
      (bytes = PyObject_CallMethodNoArgs(storage, name_nbytes)))
    found = PyTuple_Pack(2, key, bytes);
  Py_XDECREF(layout);
  Py_XDECREF(wrapped);
  Py_XDECREF(storage);
  Py_XDECREF(key);
  Py_XDECREF(bytes);
  if (found) return found;
  PyErr_Clear();
  return memory_from_python(self, tensor);
}

/* The summary of a shape and a dtype: NULL with an exception. */
static PyObject *unread_of(Builder *self, PyObject *tensor) {
  PyObject *from = self->of_torch ? tensor : SLOT(tensor, core.data);
  if (!from) return PyErr_Format(PyExc_AttributeError, "a tensor has no _data");
  Py_INCREF(from);
  PyObject *shape = PyObject_GetAttr(from, name_shape), *dtype = shape ? PyObject_GetAttr(from, name_dtype) : NULL,
           *found = NULL;
  if (dtype) found = PyObject_CallFunctionObjArgs(self->unread, shape, dtype, NULL);
  Py_XDECREF(shape);
  Py_XDECREF(dtype);
  Py_DECREF(from);
  return found;
}

static PyObject *summary_of(Builder *self, PyObject *tensor) {
  return self->shapes_only ? unread_of(self, tensor) : PyObject_CallOneArg(self->summary, tensor);
}

/* --- what the containers say -------------------------------------------------------------------------------------- */

/* The number of a leaf that is known; a borrowed reference, or NULL, maybe with an exception. */
static PyObject *known_leaf(Builder *self, PyObject *tensor) {
  PyObject *id = PyLong_FromVoidPtr(tensor), *found = id ? PyDict_GetItemWithError(self->leaves, id) : NULL;
  Py_XDECREF(id);
  if (!found) return NULL;
  if (PyTuple_Check(found) && PyTuple_GET_SIZE(found) == 2) return PyTuple_GET_ITEM(found, 1);
  return PyErr_Format(PyExc_TypeError, "leaves must be pairs");
}

/* The number of a tensor's memory, -1 with an exception; `bytes` is a new reference to its size, if wanted. */
static Py_ssize_t memory_number(Builder *self, PyObject *tensor, PyObject *version, PyObject **bytes) {
  PyObject *memory = memory_of(self, tensor);
  if (!memory) return -1;
  PyObject *key = PyTuple_GET_ITEM(memory, 0), *number = PyDict_GetItemWithError(self->memories, key);
  Py_ssize_t found = -1;
  if (number) {
    found = PyLong_AsSsize_t(number);
  } else if (!PyErr_Occurred()) {
    PyObject *none = zero(), *next = PyLong_FromSsize_t(PyList_GET_SIZE(self->written));
    if (none && next && PyDict_SetItem(self->memories, key, next) == 0 && PyList_Append(self->written, version) == 0 &&
        PyList_Append(self->holders, none) == 0 && PyList_Append(self->keys, key) == 0)
      found = PyLong_AsSsize_t(next);
    Py_XDECREF(none);
    Py_XDECREF(next);
  }
  if (found >= PyList_GET_SIZE(self->written) || found >= PyList_GET_SIZE(self->holders)) {
    PyErr_Format(PyExc_RuntimeError, "the builder's lists of memory must be of one length");
    found = -1;
  }
  if (found >= 0 && bytes) *bytes = Py_NewRef(PyTuple_GET_ITEM(memory, 1));
  Py_DECREF(memory);
  return found;
}

/* Which node made a tensor that requires grad, and as which output: new references; `of` is NULL if it is not known. */
static int maker_of(Builder *self, PyObject *tensor, PyObject **of, PyObject **output) {
  PyObject *node = NULL, *known;
  if (self->of_torch) {
    node = PyObject_GetAttr(tensor, name_grad_fn);
    if (!node) return -1;
    *output = node == Py_None ? zero() : PyObject_GetAttr(tensor, name_output_nr);
  } else {
    PyObject *edge = SLOT(tensor, core.edge);
    struct input to = {0};
    if (edge == core.leaf)
      node = Py_NewRef(Py_None), *output = zero();
    else if (read_own_edge(edge, &to) == 0)
      node = to.end ? to.end : Py_NewRef(Py_None), *output = to.number;
    else
      return Py_XDECREF(to.end), -1;
  }
  int failed = !*output;
  if (!failed && node == Py_None) {
    known = known_leaf(self, tensor);
    failed = !known && PyErr_Occurred();
    *of = Py_XNewRef(known);
  } else if (!failed) {
    PyObject *key = key_of(self, node);
    known = key ? PyDict_GetItemWithError(self->ids, key) : NULL;
    failed = !known && PyErr_Occurred();
    *of = Py_XNewRef(known);
    Py_XDECREF(key);
  }
  Py_DECREF(node);
  return failed ? -1 : 0;
}

static PyObject *node_at(Builder *self, PyObject *number) { /* borrowed; NULL: there is none */
  Py_ssize_t at = PyLong_Check(number) ? PyLong_AsSsize_t(number) : -1;
  if (at < 0 || at >= PyList_GET_SIZE(self->nodes)) return PyErr_Clear(), NULL;
  PyObject *node = PyList_GET_ITEM(self->nodes, at);
  return Py_TYPE(node) == node_class.type ? node : NULL;
}

/* The known summary of what a node saved, if it was not written to since, else a new one. */
static PyObject *summary_of_saved(Builder *self, PyObject *tensor, PyObject *version, PyObject *of, PyObject *output) {
  PyObject *made = of ? node_at(self, of) : NULL, *had = made ? SLOT(made, node_class.slot[N_VERSION]) : NULL;
  PyObject *outputs = made ? SLOT(made, node_class.slot[N_OUTPUTS]) : NULL;
  int same = had && outputs && PyList_Check(outputs) ? PyObject_RichCompareBool(had, version, Py_EQ) : 0;
  Py_ssize_t at = same > 0 ? PyLong_AsSsize_t(output) : -1;
  if (same < 0 || (at < 0 && PyErr_Occurred())) return NULL;
  if (same && at >= 0 && at < PyList_GET_SIZE(outputs) && Py_TYPE(PyList_GET_ITEM(outputs, at)) == summary_class.type) {
    PyObject *known = Py_NewRef(PyList_GET_ITEM(outputs, at)),
             *from = self->of_torch ? tensor : SLOT(tensor, core.data);
    PyObject *shape = from ? PyObject_GetAttr(from, name_shape) : NULL, *own = SLOT(known, summary_class.slot[V_SHAPE]);
    same = shape && own ? PyObject_RichCompareBool(own, shape, Py_EQ) : -1;
    Py_XDECREF(shape);
    if (same == 1) return known;
    Py_DECREF(known);
    if (same < 0) return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_AttributeError, "a tensor has no shape");
  }
  return summary_of(self, tensor);
}

/* --- one node ----------------------------------------------------------------------------------------------------- */

static PyObject *new_record(const struct record_class *of) { return of->type->tp_alloc(of->type, 0); }

/* Fill a slot of a new object with a reference that is taken over; 0 if there is none. */
static int put(PyObject *object, Py_ssize_t slot, PyObject *value) {
  SET_NEW(object, slot, value);
  return value != NULL;
}

/* What all nodes of a class have in common: (type, label, formulas, options, saved); a new reference, None: left to
 * Python. */
enum { K_TYPE, K_LABEL, K_FORMULAS, K_OPTIONS, K_SAVED, K_FIELDS };
static PyObject *kind_of(Builder *self, PyObject *node) {
  PyObject *found = PyDict_GetItemWithError(self->kinds, (PyObject *)Py_TYPE(node));
  if (!found && PyErr_Occurred()) return NULL;
  found = found ? Py_NewRef(found) : PyObject_CallOneArg(self->kind_of, node);
  if (!found || found == Py_None) return found;
  int right = PyTuple_Check(found) && PyTuple_GET_SIZE(found) == K_FIELDS &&
              PyList_Check(PyTuple_GET_ITEM(found, K_FORMULAS)) && PyTuple_Check(PyTuple_GET_ITEM(found, K_OPTIONS)) &&
              PyTuple_Check(PyTuple_GET_ITEM(found, K_SAVED));
  if (right) return found;
  PyErr_Format(PyExc_TypeError, "what is known of a class of nodes must be a tuple of %d, got %R", K_FIELDS, found);
  Py_DECREF(found);
  return NULL;
}

/* A new node of the record, the last of its list; `edges` is taken over. A new reference. */
static PyObject *new_node(Builder *self, PyObject *kind, PyObject *type, PyObject *label, PyObject *edges) {
  PyObject *made = edges ? new_record(&node_class) : NULL;
  if (!made) {
    Py_XDECREF(edges);
    return NULL;
  }
  const Py_ssize_t *slot = node_class.slot;
  const int filled = put(made, slot[N_EDGES], edges) &&
                     put(made, slot[N_ID], PyLong_FromSsize_t(PyList_GET_SIZE(self->nodes))) &&
                     put(made, slot[N_KIND], Py_NewRef(kind)) && put(made, slot[N_TYPE], Py_NewRef(type)) &&
                     put(made, slot[N_LABEL], Py_NewRef(label)) && put(made, slot[N_NAME], Py_NewRef(Py_None)) &&
                     put(made, slot[N_PARAMETER], Py_NewRef(Py_False)) && put(made, slot[N_OUTPUTS], PyList_New(0)) &&
                     put(made, slot[N_MODULE], Py_NewRef(empty)) && put(made, slot[N_MODULE_TYPE], Py_NewRef(empty)) &&
                     put(made, slot[N_PLACE], Py_NewRef(Py_None)) && put(made, slot[N_STACK], PyList_New(0)) &&
                     put(made, slot[N_SAVED], PyList_New(0)) && put(made, slot[N_HOOKS], PyList_New(0)) &&
                     put(made, slot[N_VERSION], zero()) && put(made, slot[N_ROOT], Py_NewRef(Py_False)) &&
                     put(made, slot[N_ORDER], PyLong_FromLong(1)) && put(made, slot[N_SECONDS], Py_NewRef(Py_None)) &&
                     put(made, slot[N_GRAD], Py_NewRef(Py_None)) && put(made, slot[N_UPDATED], Py_NewRef(Py_None)) &&
                     put(made, slot[N_OPTIONS], PyDict_New());
  if (!filled || PyList_Append(self->nodes, made) < 0) Py_CLEAR(made);
  return made;
}

/* The number of a leaf, which is added if it is not known: a new reference. */
static PyObject *leaf_of(Builder *self, PyObject *tensor) {
  PyObject *known = known_leaf(self, tensor);
  if (known || PyErr_Occurred()) return Py_XNewRef(known);
  PyObject *made = new_node(self, leaf, accumulate_grad, leaf, PyList_New(0));
  if (!made) return NULL;
  const Py_ssize_t *slot = node_class.slot;
  PyObject *number = Py_NewRef(SLOT(made, slot[N_ID])), *id = PyLong_FromVoidPtr(tensor),
           *pair = id ? PyTuple_Pack(2, tensor, number) : NULL;
  PyObject *version = pair && PyDict_SetItem(self->leaves, id, pair) == 0 ? version_of(self, tensor) : NULL,
           *outputs = NULL, *at = NULL;
  PyObject *summary = version ? summary_of(self, tensor) : NULL;
  if (summary && (outputs = PyList_New(1))) {
    PyList_SET_ITEM(outputs, 0, Py_NewRef(summary));
    set_slot(made, slot[N_VERSION], version);
    set_slot(made, slot[N_OUTPUTS], outputs);
    Py_ssize_t memory = memory_number(self, tensor, version, NULL);
    at = memory < 0 ? NULL : PyLong_FromSsize_t(memory);
  }
  if (!at || PySet_Add(self->pinned, at) < 0 || !PyDict_SetDefault(self->made_in, at, number)) Py_CLEAR(number);
  Py_XDECREF(at);
  Py_XDECREF(outputs);
  Py_XDECREF(summary);
  Py_XDECREF(version);
  Py_XDECREF(pair);
  Py_XDECREF(id);
  Py_DECREF(made);
  return number;
}

static int fill_formula(PyObject *edge, PyObject *formulas, Py_ssize_t i, Py_ssize_t count) {
  Py_ssize_t length = PyList_GET_SIZE(formulas);
  PyObject *pair = length == count ? PyList_GET_ITEM(formulas, i) : length == 1 ? PyList_GET_ITEM(formulas, 0) : NULL;
  int right = pair && PyTuple_Check(pair) && PyTuple_GET_SIZE(pair) == 2;
  return put(edge, edge_class.slot[E_NAME], Py_NewRef(right ? PyTuple_GET_ITEM(pair, 0) : empty)) &&
         put(edge, edge_class.slot[E_FORMULA], Py_NewRef(right ? PyTuple_GET_ITEM(pair, 1) : empty));
}

/* The list of a node's edges; its inputs are known, but for leaves. */
static PyObject *edges_of(Builder *self, struct added *one, PyObject *kind) {
  PyObject *edges = PyList_New(0);
  for (Py_ssize_t i = 0; edges && i < one->count; i++) {
    struct input *to = &one->inputs[i];
    PyObject *edge = to->end ? NULL : Py_NewRef(Py_None);
    if (to->end) {
      PyObject *number = to->is_leaf ? leaf_of(self, to->end) : Py_XNewRef(PyDict_GetItemWithError(self->ids, to->key));
      if (!number && !PyErr_Occurred())
        PyErr_Format(PyExc_RuntimeError, "a node's inputs must be in the record before it");
      edge = number ? new_record(&edge_class) : NULL;
      if (!edge) Py_XDECREF(number);
      if (edge && !(put(edge, edge_class.slot[E_TO], number) &&
                    put(edge, edge_class.slot[E_OUTPUT], to->is_leaf ? zero() : Py_NewRef(to->number)) &&
                    fill_formula(edge, PyTuple_GET_ITEM(kind, K_FORMULAS), i, one->count)))
        Py_CLEAR(edge);
    }
    if (!edge || PyList_Append(edges, edge) < 0) Py_CLEAR(edges);
    Py_XDECREF(edge);
  }
  return edges;
}

/* The numbers that a node keeps, by the names of their formulas; those that are large or odd are read by Python. */
static PyObject *options_of(Builder *self, PyObject *node, PyObject *names) {
  PyObject *found = PyDict_New();
  for (Py_ssize_t i = 0; found && i < PyTuple_GET_SIZE(names); i++) {
    PyObject *pair = PyTuple_GET_ITEM(names, i);
    if (!PyTuple_Check(pair) || PyTuple_GET_SIZE(pair) != 2)
      return Py_DECREF(found), PyErr_Format(PyExc_TypeError, "options must be pairs of names");
    PyObject *value = PyObject_GetAttr(node, PyTuple_GET_ITEM(pair, 0));
    int failed = !value, odd = 0, overflow = 0;
    if (value && PyLong_Check(value))
      odd = (PyLong_AsLongLongAndOverflow(value, &overflow), overflow != 0);
    else if (value && PyFloat_Check(value))
      odd = !(PyFloat_AS_DOUBLE(value) >= -9223372036854775808.0 && PyFloat_AS_DOUBLE(value) < 9223372036854775808.0);
    else if (value)
      Py_CLEAR(value); /* no number */
    if (value && !odd) failed = PyDict_SetItem(found, PyTuple_GET_ITEM(pair, 1), value) < 0;
    Py_XDECREF(value);
    if (failed) Py_CLEAR(found);
    if (odd) return Py_DECREF(found), PyObject_CallOneArg(self->options_of, node);
  }
  return found;
}

/* What a node of PyTorch's keeps that can be read: a list of (name, tensor). */
static PyObject *kept_by_torch(Builder *self, PyObject *node, PyObject *names) {
  PyObject *found = PyList_New(0);
  for (Py_ssize_t i = 0; found && i < PyTuple_GET_SIZE(names); i++) {
    PyObject *name = PyTuple_GET_ITEM(names, i), *tensor = NULL;
    if (!PyTuple_Check(name) || PyTuple_GET_SIZE(name) != 3)
      return Py_DECREF(found), PyErr_Format(PyExc_TypeError, "names of what is saved must be triples");
    PyObject *raw = PyObject_GetAttr(node, PyTuple_GET_ITEM(name, 0));
    if (raw && PyTuple_CheckExact(raw)) { /* several tensors under one name */
      Py_DECREF(raw);
      Py_DECREF(found);
      return PyObject_CallOneArg(self->kept_by, node);
    }
    PyObject *hook = raw ? PyObject_GetAttr(raw, name_unpack_hook) : NULL;
    if (hook == Py_None) tensor = PyObject_GetAttr(node, PyTuple_GET_ITEM(name, 2));
    Py_XDECREF(hook);
    Py_XDECREF(raw);
    int failed = PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_RuntimeError);
    if (!failed) PyErr_Clear(); /* it was freed, or written to since */
    if (tensor && tensor != Py_None) {
      PyObject *pair = PyTuple_Pack(2, PyTuple_GET_ITEM(name, 1), tensor);
      failed = !pair || PyList_Append(found, pair) < 0;
      Py_XDECREF(pair);
    }
    Py_XDECREF(tensor);
    if (failed) Py_CLEAR(found);
  }
  return found;
}

/* Add one of the tensors that a node keeps. */
static int add_saved(Builder *self, PyObject *list, PyObject *name, PyObject *tensor) {
  if (!self->of_torch && !PyObject_TypeCheck(tensor, core.tensor_state))
    return PyErr_Format(PyExc_TypeError, "a node must keep tensors, got %R", tensor), -1;
  PyObject *version = version_of(self, tensor), *bytes = NULL, *of = NULL, *output = NULL, *summary = NULL,
           *saved = NULL;
  Py_ssize_t number = version ? memory_number(self, tensor, version, &bytes) : -1;
  int failed = number < 0, has_graph = failed ? 0 : requires_grad(self, tensor);
  if (has_graph < 0 || (has_graph > 0 && maker_of(self, tensor, &of, &output) < 0)) failed = 1;
  if (!failed && (summary = summary_of_saved(self, tensor, version, of, output)) &&
      (saved = new_record(&saved_class))) {
    const Py_ssize_t *slot = saved_class.slot;
    failed = !(put(saved, slot[S_NAME], Py_NewRef(name)) && put(saved, slot[S_SUMMARY], Py_NewRef(summary)) &&
               put(saved, slot[S_BYTES], Py_NewRef(bytes)) && put(saved, slot[S_MEMORY], PyLong_FromSsize_t(number)) &&
               put(saved, slot[S_OF], Py_NewRef(of ? of : Py_None)) &&
               put(saved, slot[S_VERSION], Py_NewRef(version)) && put(saved, slot[S_WRITTEN], Py_NewRef(version)));
    if (!failed) failed = PyList_Append(list, saved) < 0;
    failed = failed || number >= PyList_GET_SIZE(self->written) || number >= PyList_GET_SIZE(self->holders);
    if (failed && !PyErr_Occurred()) PyErr_Format(PyExc_RuntimeError, "the builder's lists must not shrink");
    int later = failed ? -1 : PyObject_RichCompareBool(version, PyList_GET_ITEM(self->written, number), Py_GT);
    if (later < 0) failed = 1;
    if (later > 0) failed = PyList_SetItem(self->written, number, Py_NewRef(version)) < 0;
    PyObject *count = failed ? NULL : PyLong_FromLong(PyLong_AsLong(PyList_GET_ITEM(self->holders, number)) + 1);
    if (!count || PyList_SetItem(self->holders, number, count) < 0) failed = 1;
  } else {
    failed = 1;
  }
  Py_XDECREF(version);
  Py_XDECREF(bytes);
  Py_XDECREF(of);
  Py_XDECREF(output);
  Py_XDECREF(summary);
  Py_XDECREF(saved);
  return failed ? -1 : 0;
}

static int add_all_saved(Builder *self, PyObject *list, PyObject *node, PyObject *names) {
  if (!PyTuple_GET_SIZE(names)) return 0;
  PyObject *kept = self->of_torch ? kept_by_torch(self, node, names) : PyObject_CallOneArg(self->kept_by, node);
  int failed = !kept || !PyList_Check(kept);
  if (kept && failed) PyErr_Format(PyExc_TypeError, "kept_by must return a list, got %R", kept);
  for (Py_ssize_t i = 0; !failed && i < PyList_GET_SIZE(kept); i++) {
    PyObject *pair = PyList_GET_ITEM(kept, i);
    if (!PyTuple_Check(pair) || PyTuple_GET_SIZE(pair) != 2)
      failed = (PyErr_Format(PyExc_TypeError, "kept_by must return pairs, got %R", pair), 1);
    else
      failed = add_saved(self, list, PyTuple_GET_ITEM(pair, 0), PyTuple_GET_ITEM(pair, 1)) < 0;
  }
  Py_XDECREF(kept);
  return failed ? -1 : 0;
}

static PyObject *add_one(Builder *self, struct added *one, PyObject *kind) {
  PyObject *made = new_node(self, one->count ? op : given, PyTuple_GET_ITEM(kind, K_TYPE),
                            PyTuple_GET_ITEM(kind, K_LABEL), edges_of(self, one, kind));
  if (!made) return NULL;
  const Py_ssize_t *slot = node_class.slot;
  PyObject *names = PyTuple_GET_ITEM(kind, K_OPTIONS), *saved = NULL;
  int failed = PyDict_SetItem(self->ids, one->key, SLOT(made, slot[N_ID])) < 0;
  if (!failed && PyTuple_GET_SIZE(names)) {
    PyObject *options = options_of(self, one->node, names);
    if (options) set_slot(made, slot[N_OPTIONS], options);
    failed = !options;
    Py_XDECREF(options);
  }
  if (!failed) saved = Py_XNewRef(SLOT(made, slot[N_SAVED]));
  if (!saved || add_all_saved(self, saved, one->node, PyTuple_GET_ITEM(kind, K_SAVED)) < 0) Py_CLEAR(made);
  Py_XDECREF(saved);
  return made;
}

/* --- a graph ------------------------------------------------------------------------------------------------------ */

/* Nodes that are to be added. Most calls add one: a small block that grows spares malloc, which a large one, allocated
   and freed at each op of a program, has join the small blocks that the program freed. */
struct batch {
  struct added *all;
  int count, room;
};

/* Put a node at the end of a batch, which takes both references over; -1 with an exception. */
static int append_added(struct batch *to, PyObject *node, PyObject *key) {
  if (to->count == to->room) {
    int room = to->room ? 4 * to->room : 8;
    struct added *larger = PyMem_Realloc(to->all, (size_t)room * sizeof *larger);
    if (!larger) {
      Py_XDECREF(node);
      Py_XDECREF(key);
      PyErr_NoMemory();
      return -1;
    }
    to->all = larger, to->room = room;
  }
  to->all[to->count++] = (struct added){node, key, 0, NULL, 0};
  return 0;
}

static void drop_batch(struct batch *of) {
  for (int at = 0; at < of->count; at++) drop_added(&of->all[at]);
  PyMem_Free(of->all);
}

/* Collect the nodes behind a root that are not in the record: how many, 0 if they are left to Python, -1 on failure. */
static int collect(Builder *self, struct batch *batch, PyObject *root) {
  PyObject *places = PyDict_New(); /* key -> place in the batch */
  if (!places) return -1;
  int failed = append_added(batch, Py_NewRef(root), key_of(self, root)) < 0;
  for (int at = 0; !failed && at < batch->count; at++) {
    PyObject *place = PyLong_FromLong(at), *key = batch->all[at].key;
    failed = !place || !key || PyDict_SetItem(places, key, place) < 0 || read_inputs(self, &batch->all[at]) < 0;
    Py_XDECREF(place);
    for (Py_ssize_t i = 0; !failed && i < batch->all[at].count; i++) {
      struct input *to = &batch->all[at].inputs[i]; /* stays where it is when the batch grows */
      if (!to->key) continue;
      int known = PyDict_Contains(self->ids, to->key);
      PyObject *before = known ? NULL : PyDict_GetItemWithError(places, to->key);
      if (known < 0 || PyErr_Occurred()) failed = 1;
      if (failed || known) continue;
      if (before) {
        to->pending = (int)PyLong_AsLong(before);
      } else if (batch->count == MOST_NEW) {
        goto left;
      } else {
        to->pending = batch->count;
        PyObject *next = PyLong_FromLong(batch->count);
        failed = !next || PyDict_SetItem(places, to->key, next) < 0 ||
                 append_added(batch, Py_NewRef(to->end), Py_NewRef(to->key)) < 0;
        Py_XDECREF(next);
      }
    }
  }
  struct added *found = batch->all;
  for (int at = 0; !failed && batch->count > 1 && at < batch->count; at++)
    failed = read_sequence(self, &found[at]) < 0;
  for (int at = 0; !failed && at < batch->count; at++)
    for (Py_ssize_t i = 0; i < found[at].count; i++)
      if (found[at].inputs[i].pending >= 0 && found[found[at].inputs[i].pending].sequence >= found[at].sequence)
        goto left;
  Py_DECREF(places);
  return failed ? -1 : batch->count;
left:
  Py_DECREF(places);
  return 0;
}

static int by_sequence(const void *a, const void *b) {
  const long long one = ((const struct added *)a)->sequence, other = ((const struct added *)b)->sequence;
  return (one > other) - (one < other);
}

/* add(root): the new nodes behind it as [(Node, engine's node)], first made first; None if Python has to add them. */
static PyObject *builder_add(Builder *self, PyObject *root) {
  if (!self->ids) return PyErr_Format(PyExc_RuntimeError, "RecordBuilder.__init__ was not called");
  if (!self->of_torch && !PyObject_TypeCheck(root, core.node)) Py_RETURN_NONE;
  struct batch batch = {NULL, 0, 0};
  int count = collect(self, &batch, root), failed = count < 0;
  if (!failed && (!count || PyList_GET_SIZE(self->nodes) + count > self->limit)) {
    drop_batch(&batch);
    Py_RETURN_NONE;
  }
  struct added *found = batch.all;
  if (!failed && count > 1) qsort(found, (size_t)count, sizeof *found, by_sequence);
  PyObject *kinds = failed ? NULL : PyList_New(0), *added = kinds ? PyList_New(0) : NULL;
  int left = 0;
  for (int at = 0; kinds && !left && at < count; at++) {
    PyObject *kind = kind_of(self, found[at].node);
    if (!kind || PyList_Append(kinds, kind) < 0) Py_CLEAR(kinds);
    left = kind == Py_None;
    Py_XDECREF(kind);
  }
  if (!kinds) Py_CLEAR(added);
  for (int at = 0; added && !left && at < count; at++) {
    PyObject *made = add_one(self, &found[at], PyList_GET_ITEM(kinds, at)),
             *pair = made ? PyTuple_Pack(2, made, found[at].node) : NULL;
    if (!pair || PyList_Append(added, pair) < 0) Py_CLEAR(added);
    Py_XDECREF(pair);
    Py_XDECREF(made);
  }
  drop_batch(&batch);
  Py_XDECREF(kinds);
  if (!left) return added;
  Py_XDECREF(added);
  Py_RETURN_NONE;
}

/* id_of(node): its number, or None. */
static PyObject *builder_id_of(Builder *self, PyObject *node) {
  if (!self->ids) return PyErr_Format(PyExc_RuntimeError, "RecordBuilder.__init__ was not called");
  PyObject *found = NULL, *key;
  if ((PyObject *)Py_TYPE(node) == self->leaf_class) {
    key = PyObject_GetAttr(node, name_variable);
    if (key) found = Py_XNewRef(known_leaf(self, key));
  } else {
    key = key_of(self, node);
    if (key) found = Py_XNewRef(PyDict_GetItemWithError(self->ids, key));
  }
  Py_XDECREF(key);
  if (!found && PyErr_Occurred()) return NULL;
  if (!found) Py_RETURN_NONE;
  return found;
}

/* unread(tensors): the shape and dtype of each as a Summary; None for None. */
static PyObject *builder_unread(Builder *self, PyObject *tensors) {
  PyObject *all = PySequence_Fast(tensors, "tensors must be a sequence"), *found = all ? PyList_New(0) : NULL;
  for (Py_ssize_t i = 0; found && i < PySequence_Fast_GET_SIZE(all); i++) {
    PyObject *tensor = Py_NewRef(PySequence_Fast_GET_ITEM(all, i)), *one = NULL;
    if (tensor == Py_None)
      one = Py_NewRef(tensor);
    else if (self->of_torch || PyObject_TypeCheck(tensor, core.tensor_state))
      one = unread_of(self, tensor);
    else
      PyErr_Format(PyExc_TypeError, "a gradient must be a tensor, got %R", tensor);
    if (!one || PyList_Append(found, one) < 0) Py_CLEAR(found);
    Py_XDECREF(one);
    Py_DECREF(tensor);
  }
  Py_XDECREF(all);
  return found;
}

/* leaf(tensor): the number of a leaf, which is added when it is first met. */
static PyObject *builder_leaf(Builder *self, PyObject *tensor) {
  if (!self->ids) return PyErr_Format(PyExc_RuntimeError, "RecordBuilder.__init__ was not called");
  if (!self->of_torch && !PyObject_TypeCheck(tensor, core.tensor_state))
    return PyErr_Format(PyExc_TypeError, "a leaf must be a tensor, got %R", tensor);
  return leaf_of(self, tensor);
}

/* set_output(node, number, tensor): note an output of a node; False if Python has to do it. */
static PyObject *builder_set_output(Builder *self, PyObject *args) {
  PyObject *made, *tensor;
  Py_ssize_t number;
  if (!PyArg_ParseTuple(args, "OnO", &made, &number, &tensor)) return NULL;
  if (!self->ids || Py_TYPE(made) != node_class.type)
    return PyErr_Format(PyExc_TypeError, "it must be a node of the record, got %R", made);
  if (!self->of_torch) {
    PyObject *data = PyObject_TypeCheck(tensor, core.tensor_state) ? SLOT(tensor, core.data) : NULL;
    if (!data || !(PyArray_CheckExact(data) || PyArray_IsScalar(data, Generic)))
      Py_RETURN_FALSE; /* maybe a batch of vmap's */
  }
  PyObject *outputs = SLOT(made, node_class.slot[N_OUTPUTS]), *id = SLOT(made, node_class.slot[N_ID]);
  if (!outputs || !id || !PyList_CheckExact(outputs) || number < 0 || number > PyList_GET_SIZE(outputs))
    Py_RETURN_FALSE;
  Py_INCREF(outputs);
  Py_INCREF(id);
  PyObject *summary = summary_of(self, tensor), *version = NULL, *at = NULL;
  int failed = !summary;
  if (!failed && number < PyList_GET_SIZE(outputs))
    failed = PyList_SetItem(outputs, number, Py_NewRef(summary)) < 0;
  else if (!failed)
    failed = PyList_Append(outputs, summary) < 0;
  if (!failed && (version = version_of(self, tensor))) {
    set_slot(made, node_class.slot[N_VERSION], version);
    Py_ssize_t memory = memory_number(self, tensor, version, NULL);
    at = memory < 0 ? NULL : PyLong_FromSsize_t(memory);
  }
  failed = !at || PyDict_SetItem(self->made_in, at, id) < 0;
  Py_XDECREF(at);
  Py_XDECREF(version);
  Py_XDECREF(summary);
  Py_DECREF(id);
  Py_DECREF(outputs);
  if (failed) return NULL;
  Py_RETURN_TRUE;
}

/* memory_number(tensor, version): (the number of its memory, its bytes). */
static PyObject *builder_memory_number(Builder *self, PyObject *args) {
  PyObject *tensor, *version, *bytes = NULL;
  if (!PyArg_ParseTuple(args, "OO", &tensor, &version)) return NULL;
  if (!self->ids) return PyErr_Format(PyExc_RuntimeError, "RecordBuilder.__init__ was not called");
  if (!self->of_torch && !PyObject_TypeCheck(tensor, core.tensor_state))
    return PyErr_Format(PyExc_TypeError, "it must be a tensor, got %R", tensor);
  Py_ssize_t number = memory_number(self, tensor, version, &bytes);
  PyObject *found = number < 0 ? NULL : Py_BuildValue("(nO)", number, bytes);
  Py_XDECREF(bytes);
  return found;
}

static int builder_traverse(Builder *self, visitproc visit, void *arg) {
  for (size_t i = 0; i < COUNT(given_fields); i++) Py_VISIT(FIELD(self, i));
  return 0;
}

static int builder_clear(Builder *self) {
  for (size_t i = 0; i < COUNT(given_fields); i++) Py_CLEAR(FIELD(self, i));
  return 0;
}

static void builder_dealloc(Builder *self) {
  PyObject_GC_UnTrack(self);
  builder_clear(self);
  Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyMethodDef builder_methods[] = {
    {"add", (PyCFunction)builder_add, METH_O,
     "Add the nodes behind a root that are not in the record, and return them."},
    {"id_of", (PyCFunction)builder_id_of, METH_O, "Return a node's number, or None."},
    {"unread", (PyCFunction)builder_unread, METH_O, "Return the shapes and dtypes of tensors."},
    {"leaf", (PyCFunction)builder_leaf, METH_O, "Return the number of a leaf, which is added when it is first met."},
    {"set_output", (PyCFunction)builder_set_output, METH_VARARGS,
     "Note an output of a node; False if that is left to Python."},
    {"memory_number", (PyCFunction)builder_memory_number, METH_VARARGS,
     "Return the number of a tensor's memory, and its bytes."},
    {NULL, NULL, 0, NULL}};

PyTypeObject RecordBuilder_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "backlight.kernels._native.RecordBuilder",
    .tp_basicsize = sizeof(Builder),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_new = PyType_GenericNew,
    .tp_init = (initproc)builder_init,
    .tp_traverse = (traverseproc)builder_traverse,
    .tp_clear = (inquiry)builder_clear,
    .tp_dealloc = (destructor)builder_dealloc,
    .tp_methods = builder_methods,
};
