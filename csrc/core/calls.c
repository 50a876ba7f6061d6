/* The base of the mode that sees PyTorch's calls (adapters/torch_calls.py), and how watchers are notified of events.

   NOTE [What a call costs under a mode] there says why this is C. PyTorch is not linked: its objects are Python objects
   here, reached by attributes, any of which may run Python code. */
#include <stddef.h>

#include "core.h"
#include "structmember.h"

/* The fields of a `Kind`, in its order. */
enum { KIND_NAME, KIND_READS, KIND_WRITES, KIND_NOTED, KIND_TO_NUMBER, KIND_PLAIN, KIND_IS_GRAD, KIND_FIELDS };

typedef struct {
  PyObject_HEAD PyObject *kinds, *kind_of, *sequence_number, *tensor_class, *records;
  char silent;           /* a watcher runs: nothing is reported */
  char hears_writes;     /* in-place writes are reported */
  char hears_all;        /* also calls that made no node */
  char hears_unrecorded; /* these also while recording is off */
} CallsMode;

static PyObject *name_followed, *name_settle, *name_requires_grad, *name_out, *name_inplace, *name_version;

static int intern_names(void) {
  static const struct {
    PyObject **at;
    const char *name;
  } names[] = {{&name_followed, "followed"}, {&name_settle, "settle"},   {&name_requires_grad, "requires_grad"},
               {&name_out, "out"},           {&name_inplace, "inplace"}, {&name_version, "_version"}};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (!*names[i].at && !(*names[i].at = PyUnicode_InternFromString(names[i].name))) return -1;
  return 0;
}

static int mode_init(CallsMode *self, PyObject *args, PyObject *options) {
  static char *names[] = {"kinds", "kind_of", "sequence_number", "tensor_class", "records", NULL};
  PyObject *kinds, *kind_of, *sequence_number, *tensor_class, *records;
  if (intern_names() < 0) return -1;
  if (!PyArg_ParseTupleAndKeywords(args, options, "O!OOO!O", names, &PyDict_Type, &kinds, &kind_of, &sequence_number,
                                   &PyType_Type, &tensor_class, &records))
    return -1;
  Py_XSETREF(self->kinds, Py_NewRef(kinds));
  Py_XSETREF(self->kind_of, Py_NewRef(kind_of));
  Py_XSETREF(self->sequence_number, Py_NewRef(sequence_number));
  Py_XSETREF(self->tensor_class, Py_NewRef(tensor_class));
  Py_XSETREF(self->records, Py_NewRef(records));
  return 0;
}

/* Whether a call is wanted that made no node: 1, 0, or -1 with an exception. */
static int is_wanted(CallsMode *self) {
  if (!self->hears_all || self->hears_unrecorded) return self->hears_all;
  PyObject *found = PyObject_CallNoArgs(self->records);
  const int is = found ? PyObject_IsTrue(found) : -1;
  Py_XDECREF(found);
  return is;
}

/* What is known of a function: a new reference to a tuple of KIND_FIELDS. */
static PyObject *kind_of(CallsMode *self, PyObject *function) {
  PyObject *found = PyDict_GetItemWithError(self->kinds, function);
  if (!found && PyErr_Occurred()) return NULL;
  found = found ? Py_NewRef(found) : PyObject_CallOneArg(self->kind_of, function);
  if (found && (!PyTuple_Check(found) || PyTuple_GET_SIZE(found) != KIND_FIELDS)) {
    PyErr_Format(PyExc_TypeError, "what is known of a function must be a tuple of %d, got %R", KIND_FIELDS, found);
    Py_CLEAR(found);
  }
  return found;
}

static int is_set(PyObject *kind, int field) { return PyTuple_GET_ITEM(kind, field) == Py_True; }

/* Whether a call may write where watchers look: 1, 0, or -1 with an exception. */
static int may_write(CallsMode *self, PyObject *kind, PyObject *options) {
  if (!self->hears_writes) return 0;
  if (is_set(kind, KIND_WRITES)) return 1;
  if (!options) return 0;
  int found = PyDict_Contains(options, name_out);
  if (found) return found;
  PyObject *inplace = PyDict_GetItemWithError(options, name_inplace);
  if (!inplace) return PyErr_Occurred() ? -1 : 0;
  Py_INCREF(inplace);
  found = PyObject_IsTrue(inplace);
  Py_DECREF(inplace);
  return found;
}

/* Whether a call that made no node matters: it may have led out of the graph, or registered a hook. 1, 0, or -1. */
static int may_matter(CallsMode *self, PyObject *kind, PyObject *out) {
  if (PyTuple_GET_ITEM(kind, KIND_NOTED) != Py_None || is_set(kind, KIND_TO_NUMBER)) return 1;
  int tensor = PyObject_TypeCheck(out, (PyTypeObject *)self->tensor_class);
  if (!tensor) return 0;
  PyObject *recorded = PyObject_GetAttr(out, name_requires_grad);
  int found = recorded ? PyObject_Not(recorded) : -1;
  Py_XDECREF(recorded);
  return found;
}

#define MOST_WRITTEN 8

/* Tensors that a call may write to, and their versions; held. */
struct versions {
  PyObject *tensor[MOST_WRITTEN], *version[MOST_WRITTEN];
  int count;
};

static void drop_versions(struct versions *of) {
  for (int i = 0; i < of->count; i++) {
    Py_DECREF(of->tensor[i]);
    Py_DECREF(of->version[i]);
  }
}

/* Note an argument's version if it is a tensor that counts writes: 0 if it may hold tensors inside, or there are too
 * many. */
static int note_version(CallsMode *self, PyObject *argument, struct versions *to) {
  if (PyTuple_Check(argument) || PyList_Check(argument) || PyDict_Check(argument)) return 0;
  if (!PyObject_TypeCheck(argument, (PyTypeObject *)self->tensor_class)) return 1;
  if (to->count == MOST_WRITTEN) return 0;
  PyObject *version = PyObject_GetAttr(argument, name_version);
  if (!version) return PyErr_Clear(), 1; /* of inference mode, or not initialised: nothing counts its writes */
  to->tensor[to->count] = Py_NewRef(argument);
  to->version[to->count++] = version;
  return 1;
}

static int note_versions(CallsMode *self, PyObject *args, PyObject *options, struct versions *to) {
  PyObject *key, *value;
  Py_ssize_t at = 0;
  int fits = 1;
  for (Py_ssize_t i = 0; fits && i < PyTuple_GET_SIZE(args); i++)
    fits = note_version(self, PyTuple_GET_ITEM(args, i), to);
  PyObject *copy = fits && options ? PyDict_Copy(options) : NULL; /* what a getter runs may change it */
  while (copy && fits && PyDict_Next(copy, &at, &key, &value)) fits = note_version(self, value, to);
  Py_XDECREF(copy);
  return fits && !PyErr_Occurred();
}

/* What was written to, as [(tensor, version before)]; NULL with an exception. */
static PyObject *written(const struct versions *of) {
  PyObject *found = PyTuple_New(0);
  for (int i = 0; found && i < of->count; i++) {
    PyObject *now = PyObject_GetAttr(of->tensor[i], name_version);
    int same = now ? PyObject_RichCompareBool(now, of->version[i], Py_EQ) : -1;
    Py_XDECREF(now);
    if (same > 0) continue;
    PyObject *pair = same < 0 ? NULL : Py_BuildValue("((OO))", of->tensor[i], of->version[i]),
             *more = pair ? PySequence_Concat(found, pair) : NULL;
    Py_XDECREF(pair);
    Py_SETREF(found, more);
  }
  return found;
}

/* Call a function, compare the number of the next node and the versions; hand on to Python what matters. */
static PyObject *call_and_look(CallsMode *self, PyObject *kind, PyObject *function, PyObject *args, PyObject *options,
                               const struct versions *versions) {
  PyObject *before = PyObject_CallNoArgs(self->sequence_number),
           *out = before ? PyObject_Call(function, args, options) : NULL;
  PyObject *after = out ? PyObject_CallNoArgs(self->sequence_number) : NULL,
           *changed = after ? written(versions) : NULL;
  int made = changed ? PyObject_RichCompareBool(before, after, Py_NE) : -1;
  int matters = made ? made : PyTuple_GET_SIZE(changed) ? 1 : may_matter(self, kind, out);
  if (matters < 0) Py_CLEAR(out);
  if (matters > 0) {
    PyObject *given[] = {(PyObject *)self,          kind,   args, options ? options : Py_None, out, before,
                         made ? Py_True : Py_False, changed};
    PyObject *done = PyObject_VectorcallMethod(name_settle, given, 8, NULL);
    if (!done) Py_CLEAR(out);
    Py_XDECREF(done);
  }
  Py_XDECREF(before);
  Py_XDECREF(after);
  Py_XDECREF(changed);
  return out;
}

/* __torch_function__(function, types, args=(), kwargs=None) */
static PyObject *mode_call(CallsMode *self, PyObject *const *given, Py_ssize_t count) {
  if (count < 2 || count > 4 || (count > 2 && !PyTuple_Check(given[2])) ||
      (count > 3 && given[3] != Py_None && !PyDict_Check(given[3])))
    return PyErr_Format(PyExc_TypeError,
                        "__torch_function__ must be called with a function, types, a tuple and a dict");
  if (!self->kinds) return PyErr_Format(PyExc_RuntimeError, "CallsMode.__init__ was not called");
  PyObject *function = given[0], *args = count > 2 ? Py_NewRef(given[2]) : PyTuple_New(0);
  if (!args) return NULL;
  PyObject *options = count > 3 && given[3] != Py_None && PyDict_GET_SIZE(given[3]) ? given[3] : NULL;
  PyObject *kind = NULL, *out = NULL;
  if (self->silent) {
    out = PyObject_Call(function, args, options);
    goto done;
  }
  kind = kind_of(self, function);
  if (!kind) goto done;
  const int wanted = is_set(kind, KIND_PLAIN) ? 0 : is_wanted(self);
  if (wanted < 0) goto done;
  if (is_set(kind, KIND_PLAIN) || (is_set(kind, KIND_IS_GRAD) && !wanted)) {
    out = PyObject_Call(function, args, NULL);
    goto done;
  }
  struct versions versions = {.count = 0};
  int writes = wanted ? 0 : may_write(self, kind, options);
  if (writes < 0) goto done;
  if (!wanted && (!writes || note_versions(self, args, options, &versions))) {
    out = call_and_look(self, kind, function, args, options, &versions);
  } else if (!PyErr_Occurred()) {
    PyObject *all[] = {(PyObject *)self, kind, function, args, options ? options : Py_None};
    out = PyObject_VectorcallMethod(name_followed, all, 5, NULL);
  }
  drop_versions(&versions);
done:
  Py_XDECREF(kind);
  Py_DECREF(args);
  return out;
}

static int mode_traverse(CallsMode *self, visitproc visit, void *arg) {
  Py_VISIT(self->kinds);
  Py_VISIT(self->kind_of);
  Py_VISIT(self->sequence_number);
  Py_VISIT(self->tensor_class);
  Py_VISIT(self->records);
  return 0;
}

static int mode_clear(CallsMode *self) {
  Py_CLEAR(self->kinds);
  Py_CLEAR(self->kind_of);
  Py_CLEAR(self->sequence_number);
  Py_CLEAR(self->tensor_class);
  Py_CLEAR(self->records);
  return 0;
}

static void mode_dealloc(CallsMode *self) {
  PyObject_GC_UnTrack(self);
  mode_clear(self);
  Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyMethodDef mode_methods[] = {{"__torch_function__", (PyCFunction)(void (*)(void))mode_call, METH_FASTCALL,
                                      "Run a call of PyTorch's, and report it if it matters."},
                                     {NULL, NULL, 0, NULL}};

static PyMemberDef mode_members[] = {{"silent", T_BOOL, offsetof(CallsMode, silent), 0, NULL},
                                     {"hears_writes", T_BOOL, offsetof(CallsMode, hears_writes), 0, NULL},
                                     {"hears_all", T_BOOL, offsetof(CallsMode, hears_all), 0, NULL},
                                     {"hears_unrecorded", T_BOOL, offsetof(CallsMode, hears_unrecorded), 0, NULL},
                                     {NULL, 0, 0, 0, NULL}};

PyTypeObject CallsMode_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "backlight.kernels._native.CallsMode",
    .tp_basicsize = sizeof(CallsMode),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE,
    .tp_new = PyType_GenericNew,
    .tp_init = (initproc)mode_init,
    .tp_traverse = (traverseproc)mode_traverse,
    .tp_clear = (inquiry)mode_clear,
    .tp_dealloc = (destructor)mode_dealloc,
    .tp_methods = mode_methods,
    .tp_members = mode_members,
};

/* --- a listener that must not disturb the program ----------------------------------------------------------------- */

/* Calls a listener; an exception that it raises is handed to another function, and the listener is called no more. */
typedef struct {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject *listener,
      *guard; /* `guard` has the attribute `failed`, shared with others, and is called with the exception */
} Guarded;

static PyObject *name_failed;

static PyObject *guarded_call(PyObject *object, PyObject *const *args, size_t flags, PyObject *names) {
  Guarded *self = (Guarded *)object;
  if (!self->listener) Py_RETURN_NONE; /* the garbage collector cleared it */
  PyObject *listener = Py_NewRef(self->listener), *guard = Py_NewRef(self->guard), *out = NULL;
  PyObject *failed = PyObject_GetAttr(guard, name_failed);
  const int is_over = failed ? PyObject_IsTrue(failed) : -1;
  Py_XDECREF(failed);
  if (is_over > 0) {
    out = Py_NewRef(Py_None);
  } else if (!is_over) {
    out = PyObject_Vectorcall(listener, args, flags, names);
    if (!out && PyErr_ExceptionMatches(PyExc_Exception)) {
      PyObject *problem = take_raised();
      out = problem ? PyObject_CallOneArg(guard, problem) : NULL;
      Py_XDECREF(problem);
    }
  }
  Py_DECREF(listener);
  Py_DECREF(guard);
  return out;
}

static PyObject *guarded_new(PyTypeObject *type, PyObject *args, PyObject *options) {
  PyObject *listener, *guard;
  if (options && PyDict_GET_SIZE(options)) return PyErr_Format(PyExc_TypeError, "GuardedCall takes no keywords");
  if (!name_failed && !(name_failed = PyUnicode_InternFromString("failed"))) return NULL;
  if (!PyArg_ParseTuple(args, "OO", &listener, &guard)) return NULL;
  Guarded *self = (Guarded *)type->tp_alloc(type, 0);
  if (!self) return NULL;
  self->vectorcall = guarded_call;
  self->listener = Py_NewRef(listener);
  self->guard = Py_NewRef(guard);
  return (PyObject *)self;
}

static int guarded_traverse(Guarded *self, visitproc visit, void *arg) {
  Py_VISIT(self->listener);
  Py_VISIT(self->guard);
  return 0;
}

static int guarded_clear(Guarded *self) {
  Py_CLEAR(self->listener);
  Py_CLEAR(self->guard);
  return 0;
}

static void guarded_dealloc(Guarded *self) {
  PyObject_GC_UnTrack(self);
  guarded_clear(self);
  Py_TYPE(self)->tp_free((PyObject *)self);
}

PyTypeObject GuardedCall_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "backlight.kernels._native.GuardedCall",
    .tp_basicsize = sizeof(Guarded),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_vectorcall_offset = offsetof(Guarded, vectorcall),
    .tp_call = PyVectorcall_Call,
    .tp_new = guarded_new,
    .tp_traverse = (traverseproc)guarded_traverse,
    .tp_clear = (inquiry)guarded_clear,
    .tp_dealloc = (destructor)guarded_dealloc,
};

/* --- the hooks of a backward's nodes ------------------------------------------------------------------------------- */

/* The hook of a node in a watched backward (adapters/torch_backward.py): calls the listeners to `ran`, and those to
   `then`, "freed" with the node or "accumulated" with the leaf, what arrived and `.grad` before; nothing while a
   watcher runs. `before` is a list of that one value, which the prehook of the leaf fills in. */
typedef struct {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject *mode, *listeners, *run, *node, *then, *before;
} NodeReport;

static PyObject *name_ran, *name_leaf;

/* Call each of the listeners to an event, which are a tuple; -1 with an exception. */
static int call_all(PyObject *listeners, PyObject *event, PyObject *const *args, size_t count) {
  PyObject *all = PyDict_GetItemWithError(listeners, event);
  if (!all || !PyTuple_Check(all)) {
    if (!PyErr_Occurred()) PyErr_Format(PyExc_TypeError, "the listeners to %R must be a tuple", event);
    return -1;
  }
  Py_INCREF(all);
  int failed = 0;
  for (Py_ssize_t i = 0; !failed && i < PyTuple_GET_SIZE(all); i++) {
    PyObject *out = PyObject_Vectorcall(PyTuple_GET_ITEM(all, i), args, count, NULL);
    failed = !out;
    Py_XDECREF(out);
  }
  Py_DECREF(all);
  return failed ? -1 : 0;
}

static int report_accumulated(NodeReport *self, PyObject *arrived) {
  PyObject *leaf = PyObject_GetAttr(self->node, name_leaf), *first = NULL, *before = NULL;
  int failed = !leaf || !(first = PySequence_GetItem(arrived, 0)) || !(before = PySequence_GetItem(self->before, 0));
  PyObject *given[] = {self->run, leaf, first, before};
  if (!failed) failed = call_all(self->listeners, self->then, given, 4) < 0;
  Py_XDECREF(leaf);
  Py_XDECREF(first);
  Py_XDECREF(before);
  return failed ? -1 : 0;
}

/* (grad_inputs, grad_outputs) */
static PyObject *node_report_call(PyObject *object, PyObject *const *args, size_t flags, PyObject *names) {
  NodeReport *self = (NodeReport *)object;
  if (PyVectorcall_NARGS(flags) != 2 || names)
    return PyErr_Format(PyExc_TypeError, "a node's hook must be called with grad_inputs and grad_outputs");
  if (!self->node || ((CallsMode *)self->mode)->silent) Py_RETURN_NONE;
  Py_INCREF(self); /* a listener may remove the hook */
  CallsMode *mode = (CallsMode *)self->mode;
  mode->silent = 1;
  PyObject *nothing = self->before ? PyTuple_New(0) : NULL;
  PyObject *given[] = {self->run, self->node, args[1], self->before ? nothing : args[0]};
  int failed = (self->before && !nothing) || call_all(self->listeners, name_ran, given, 4) < 0;
  if (!failed && self->then) {
    if (self->before)
      failed = report_accumulated(self, args[1]) < 0;
    else
      failed = call_all(self->listeners, self->then, given, 2) < 0;
  }
  mode->silent = 0;
  Py_XDECREF(nothing);
  Py_DECREF(self);
  if (failed) return NULL;
  Py_RETURN_NONE;
}

/* NodeReport(mode, listeners, run, node, then, before=None); `then` is None for no second event. */
static PyObject *node_report_new(PyTypeObject *type, PyObject *args, PyObject *options) {
  PyObject *mode, *listeners, *run, *node, *then, *before = Py_None;
  if (options && PyDict_GET_SIZE(options)) return PyErr_Format(PyExc_TypeError, "NodeReport takes no keywords");
  if (!name_ran && !(name_ran = PyUnicode_InternFromString("ran"))) return NULL;
  if (!name_leaf && !(name_leaf = PyUnicode_InternFromString("variable"))) return NULL;
  if (!PyArg_ParseTuple(args, "O!O!OOO|O", &CallsMode_Type, &mode, &PyDict_Type, &listeners, &run, &node, &then,
                        &before))
    return NULL;
  NodeReport *self = (NodeReport *)type->tp_alloc(type, 0);
  if (!self) return NULL;
  self->vectorcall = node_report_call;
  self->mode = Py_NewRef(mode);
  self->listeners = Py_NewRef(listeners);
  self->run = Py_NewRef(run);
  self->node = Py_NewRef(node);
  self->then = then == Py_None ? NULL : Py_NewRef(then);
  self->before = before == Py_None ? NULL : Py_NewRef(before);
  return (PyObject *)self;
}

static int node_report_traverse(NodeReport *self, visitproc visit, void *arg) {
  Py_VISIT(self->mode);
  Py_VISIT(self->listeners);
  Py_VISIT(self->run);
  Py_VISIT(self->node);
  Py_VISIT(self->then);
  Py_VISIT(self->before);
  return 0;
}

static int node_report_clear(NodeReport *self) {
  Py_CLEAR(self->node);
  Py_CLEAR(self->mode);
  Py_CLEAR(self->listeners);
  Py_CLEAR(self->run);
  Py_CLEAR(self->then);
  Py_CLEAR(self->before);
  return 0;
}

static void node_report_dealloc(NodeReport *self) {
  PyObject_GC_UnTrack(self);
  node_report_clear(self);
  Py_TYPE(self)->tp_free((PyObject *)self);
}

PyTypeObject NodeReport_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "backlight.kernels._native.NodeReport",
    .tp_basicsize = sizeof(NodeReport),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_vectorcall_offset = offsetof(NodeReport, vectorcall),
    .tp_call = PyVectorcall_Call,
    .tp_new = node_report_new,
    .tp_traverse = (traverseproc)node_report_traverse,
    .tp_clear = (inquiry)node_report_clear,
    .tp_dealloc = (destructor)node_report_dealloc,
};

/* --- an event of the doctor ---------------------------------------------------------------------------------------- */

/* Passes an event on to detectors (lens/doctor/engine_watch.py, whose `_PythonSender` is the reference): nothing while
   one of them runs; an exception of one is handed to `watch._give_up`, and the others go on. */
typedef struct {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject *watch, *listeners;
} Sender;

static PyObject *name_busy, *name_read, *name_give_up, *name_self;

static int is_busy(PyObject *watch) {
  PyObject *busy = PyObject_GetAttr(watch, name_busy);
  const int is = busy ? PyObject_IsTrue(busy) : -1;
  Py_XDECREF(busy);
  return is;
}

/* Hand the exception that a listener raised to the watch: 0, or -1 if it is none that is caught. */
static int give_up(PyObject *watch, PyObject *listener) {
  if (!PyErr_ExceptionMatches(PyExc_Exception)) return -1;
  PyObject *problem = take_raised(), *detector = problem ? PyObject_GetAttr(listener, name_self) : NULL;
  PyObject *done = detector ? PyObject_CallMethodObjArgs(watch, name_give_up, detector, problem, NULL) : NULL;
  Py_XDECREF(problem);
  Py_XDECREF(detector);
  Py_XDECREF(done);
  return done ? 0 : -1;
}

static PyObject *sender_call(PyObject *object, PyObject *const *args, size_t flags, PyObject *names) {
  Sender *self = (Sender *)object;
  if (!self->watch) Py_RETURN_NONE; /* the garbage collector cleared it */
  PyObject *watch = Py_NewRef(self->watch), *all = NULL, *read = NULL;
  int failed = is_busy(watch);
  if (failed > 0) {
    Py_DECREF(watch);
    Py_RETURN_NONE;
  }
  if (!failed) failed = !(all = PySequence_Tuple(self->listeners)) || !(read = PyDict_New());
  if (!failed && PyTuple_GET_SIZE(all)) {
    failed = PyObject_SetAttr(watch, name_read, read) < 0 || PyObject_SetAttr(watch, name_busy, Py_True) < 0;
    for (Py_ssize_t i = 0; !failed && i < PyTuple_GET_SIZE(all); i++) {
      PyObject *out = PyObject_Vectorcall(PyTuple_GET_ITEM(all, i), args, PyVectorcall_NARGS(flags), names);
      if (!out) failed = give_up(watch, PyTuple_GET_ITEM(all, i)) < 0;
      Py_XDECREF(out);
    }
    PyObject *problem = failed ? take_raised() : NULL;
    if (PyObject_SetAttr(watch, name_busy, Py_False) < 0 || PyObject_SetAttr(watch, name_read, Py_None) < 0) failed = 1;
    if (problem) {
      PyErr_Clear();
      raise_again(problem);
    }
  }
  Py_XDECREF(read);
  Py_XDECREF(all);
  Py_DECREF(watch);
  if (failed) return NULL;
  Py_RETURN_NONE;
}

/* Sender(watch, listeners); `listeners` is a list, which may change, or a tuple. */
static PyObject *sender_new(PyTypeObject *type, PyObject *args, PyObject *options) {
  static const struct {
    PyObject **at;
    const char *name;
  } names[] = {
      {&name_busy, "busy"}, {&name_read, "read"}, {&name_give_up, "_give_up"}, {&name_self, "__self__"}};
  PyObject *watch, *listeners;
  if (options && PyDict_GET_SIZE(options)) return PyErr_Format(PyExc_TypeError, "Sender takes no keywords");
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (!*names[i].at && !(*names[i].at = PyUnicode_InternFromString(names[i].name))) return NULL;
  if (!PyArg_ParseTuple(args, "OO", &watch, &listeners)) return NULL;
  Sender *self = (Sender *)type->tp_alloc(type, 0);
  if (!self) return NULL;
  self->vectorcall = sender_call;
  self->watch = Py_NewRef(watch);
  self->listeners = Py_NewRef(listeners);
  return (PyObject *)self;
}

static int sender_traverse(Sender *self, visitproc visit, void *arg) {
  Py_VISIT(self->watch);
  Py_VISIT(self->listeners);
  return 0;
}

static int sender_clear(Sender *self) {
  Py_CLEAR(self->watch);
  Py_CLEAR(self->listeners);
  return 0;
}

static void sender_dealloc(Sender *self) {
  PyObject_GC_UnTrack(self);
  sender_clear(self);
  Py_TYPE(self)->tp_free((PyObject *)self);
}

PyTypeObject Sender_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "backlight.kernels._native.Sender",
    .tp_basicsize = sizeof(Sender),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_vectorcall_offset = offsetof(Sender, vectorcall),
    .tp_call = PyVectorcall_Call,
    .tp_new = sender_new,
    .tp_traverse = (traverseproc)sender_traverse,
    .tp_clear = (inquiry)sender_clear,
    .tp_dealloc = (destructor)sender_dealloc,
};
