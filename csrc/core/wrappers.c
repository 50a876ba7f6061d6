/* `OutFunction`: a function of tensors that also takes `out`. Calls with that keyword go to one Python function, all others
   straight on. `CheckedFunction`: a function or method without it, whose failed calls are explained.

   Called with the GIL, by anyone, with any arguments. The garbage collector may have cleared an object that finalizers
   still call: then a ReferenceError is raised. */
#include "argument_kinds.h"
#include "kernel.h"
#include "wrappers.h"
#include <stddef.h>

typedef struct {
  struct wrapper base;
  PyObject *written; /* called with (function, args, kwargs) where `out` is among the keywords */
  PyObject *module;  /* the namespace that shows the function, */
  PyObject *name;    /* and how it calls it */
  struct argument_check check;
} OutFunction;

static int names_out(PyObject *names) {
  const Py_ssize_t count = PyTuple_GET_SIZE(names);
  for (Py_ssize_t i = 0; i < count; i++)
    if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, i), "out") == 0) return 1;
  return 0;
}

/* Call something with (function, args, kwargs). */
static PyObject *hand_over(PyObject *to, PyObject *function, PyObject *const *args, Py_ssize_t count, PyObject *names) {
  PyObject *given, *options, *found = NULL;
  if (!gather_arguments(args, count, names, &given, &options))
    found = PyObject_CallFunctionObjArgs(to, function, given, options, NULL);
  Py_XDECREF(given);
  Py_XDECREF(options);
  return found;
}

static PyObject *explains; /* called with (function, args, kwargs, exception) after a call failed; raised is what it returns */

PyObject *core_explain(PyObject *self, PyObject *explain) {
  (void)self;
  Py_XSETREF(explains, explain == Py_None ? NULL : Py_NewRef(explain));
  Py_RETURN_NONE;
}

static PyObject *older; /* called with (function, args, kwargs) after a TypeError; returns a result, or NotImplemented */

PyObject *core_older(PyObject *self, PyObject *function) {
  (void)self;
  Py_XSETREF(older, function == Py_None ? NULL : Py_NewRef(function));
  Py_RETURN_NONE;
}

/* The result of a refused call that has one of the signatures of older versions of PyTorch
   (dispatch/arguments/older_signatures.py); NULL, with the exception that is raised, for any other. */
PyObject *older_call(PyObject *function, PyObject *const *args, Py_ssize_t count, PyObject *names) {
  if (!older || !PyErr_ExceptionMatches(PyExc_TypeError)) return NULL;
  PyObject *problem = take_raised(), *given, *options, *found = NULL, *call = Py_NewRef(older);
  if (!gather_arguments(args, count, names, &given, &options)) found = PyObject_CallFunctionObjArgs(call, function, given, options, NULL);
  Py_DECREF(call);
  Py_XDECREF(given);
  Py_XDECREF(options);
  if (found == Py_NotImplemented) {
    Py_DECREF(found);
    raise_again(problem);
    return NULL;
  }
  Py_DECREF(problem);
  return found;
}

/* Raise in place of the exception of a failed call the one that fits its arguments (NOTE [Failed calls] in
   dispatch/arguments/parsing.py), unless it has an older signature: then its result. */
PyObject *failed_call(PyObject *function, PyObject *const *args, Py_ssize_t count, PyObject *names) {
  PyObject *problem, *given, *options, *better = NULL;
  if (!explains || !PyErr_ExceptionMatches(PyExc_Exception)) return NULL;
  problem = take_raised();
  PyObject *explain = Py_NewRef(explains);
  if (!gather_arguments(args, count, names, &given, &options))
    better = PyObject_CallFunctionObjArgs(explain, function, given, options, problem, NULL);
  Py_DECREF(explain);
  Py_XDECREF(given);
  Py_XDECREF(options);
  const int interrupted = !better && !PyErr_ExceptionMatches(PyExc_Exception);
  if (interrupted || (better && better != problem && PyExceptionInstance_Check(better))) {
    if (!interrupted) PyErr_SetObject((PyObject *)Py_TYPE(better), better);
    Py_DECREF(problem);
  } else {
    PyErr_Clear();
    raise_again(problem);
  }
  Py_XDECREF(better);
  return older_call(function, args, count, names);
}

PyObject *call_explained(struct wrapper *self, PyObject *const *args, size_t flags, PyObject *names) {
  PyObject *found = call_reference(self, args, flags, names);
  return found ? found : failed_call((PyObject *)self, args, PyVectorcall_NARGS(flags), names);
}

/* Whether a value is a tensor whose layout is not strided, or a list or tuple with one. */
static int has_other_layout(PyObject *value) {
  if (Py_TYPE(value) == core.tensor || PyType_IsSubtype(Py_TYPE(value), core.tensor_state)) {
    PyObject *data = SLOT(value, core.data);
    return data && Py_TYPE(data) == core.layout;
  }
  if (!PyList_CheckExact(value) && !PyTuple_CheckExact(value)) return 0;
  const Py_ssize_t count = PySequence_Fast_GET_SIZE(value);
  for (Py_ssize_t i = 0; i < count; i++) {
    PyObject *one = PySequence_Fast_GET_ITEM(value, i);
    if (PyType_IsSubtype(Py_TYPE(one), core.tensor_state) && has_other_layout(one)) return 1;
  }
  return 0;
}

/* Whether `dispatch` need not be asked: only tensors of another layout can intercept a call now, and it has none; or only
   classes of arguments, too, and each argument is a Tensor (no subclass), a number, a text or None. */
int is_plain_call(PyObject *const *args, Py_ssize_t count, PyObject *names) {
  if (!core.only_classes && !core.only_layouts) return 0;
  if (names) count += PyTuple_GET_SIZE(names);
  for (Py_ssize_t i = 0; i < count; i++) {
    if (core.layout && has_other_layout(args[i])) return 0;
    if (core.only_layouts) continue;
    const PyTypeObject *type = Py_TYPE(args[i]);
    if (type != core.tensor && type != &PyFloat_Type && type != &PyLong_Type && type != &PyBool_Type && type != &PyUnicode_Type &&
        args[i] != Py_None)
      return 0;
  }
  return 1;
}

int is_offered(PyObject *function) {
  if (!core.only_functions) return 1;
  PyObject *functions = Py_NewRef(core.only_functions); /* comparing may run Python */
  const int found = PyDict_Contains(functions, function);
  Py_DECREF(functions);
  if (found < 0) PyErr_Clear(); /* the dispatcher looks again */
  return found && core.dispatch;
}

/* What `dispatch` makes of a call: a new reference, which may be core.unhandled; NULL with the exception that fits. */
PyObject *call_dispatch(PyObject *op, PyObject *function, PyObject *const *args, Py_ssize_t count, PyObject *names) {
  PyObject *dispatch = Py_NewRef(core.dispatch), *given = NULL, *options = NULL, *found = NULL;
  if (!gather_arguments(args, count, names, &given, &options)) {
    PyObject *call[] = {op, function, given, options};
    found = PyObject_Vectorcall(dispatch, call, 4, NULL);
  }
  Py_XDECREF(given);
  Py_XDECREF(options);
  Py_DECREF(dispatch);
  return found ? found : failed_call(function, args, count, names);
}

static PyObject *out_call(PyObject *object, PyObject *const *args, size_t flags, PyObject *names) {
  OutFunction *self = (OutFunction *)object;
  const Py_ssize_t count = PyVectorcall_NARGS(flags);
  if (core.intercepts && core.dispatch && is_offered(object) && !is_plain_call(args, count, names)) {
    PyObject *unhandled = core.unhandled, *out = call_dispatch(Py_None, object, args, count, names);
    if (out != unhandled) return out;
    Py_DECREF(out);
  }
  PyObject *reference = reference_of(&self->base);
  if (!reference) return NULL;
  if (check_arguments(&self->check, object, args, count, names) < 0) return older_call(object, args, count, names);
  PyObject *found = names && names_out(names) ? hand_over(self->written, reference, args, count, names)
                                              : PyObject_Vectorcall(reference, args, flags, names);
  return found ? found : failed_call(object, args, count, names);
}

static int out_traverse(OutFunction *self, visitproc visit, void *arg) {
  Py_VISIT(self->base.reference);
  Py_VISIT(self->written);
  Py_VISIT(self->module);
  Py_VISIT(self->name);
  return 0;
}

static int out_clear(OutFunction *self) {
  Py_CLEAR(self->base.reference);
  Py_CLEAR(self->written);
  Py_CLEAR(self->module);
  Py_CLEAR(self->name);
  return 0;
}

static void out_dealloc(OutFunction *self) {
  PyObject_GC_UnTrack(self);
  out_clear(self);
  free_argument_check(&self->check);
  PyObject_GC_Del(self);
}

static PyObject *out_reduce(PyObject *self, PyObject *unused) {
  (void)unused;
  OutFunction *function = (OutFunction *)self;
  return reference_of(&function->base) ? Py_XNewRef(function->name) : NULL;
}

static PyMethodDef out_methods[] = {{"__reduce__", out_reduce, METH_NOARGS, "Pickle by name, as functions are."},
                                    {NULL, NULL, 0, NULL}};

/* Its module is the one that shows it. */
static PyObject *out_getattro(PyObject *self, PyObject *name) {
  PyObject *module = ((OutFunction *)self)->module;
  if (module && PyUnicode_CompareWithASCIIString(name, "__module__") == 0) return Py_NewRef(module);
  return wrapper_getattro(self, name);
}

static int out_setattro(PyObject *self, PyObject *name, PyObject *value) {
  return set_on_reference((struct wrapper *)self, name, value);
}

static PyObject *out_repr(OutFunction *self) { return repr_of_reference(&self->base); }

PyTypeObject OutFunction_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "backlight.kernels._native.OutFunction",
    .tp_basicsize = sizeof(OutFunction),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_vectorcall_offset = offsetof(struct wrapper, vectorcall),
    .tp_call = PyVectorcall_Call,
    .tp_traverse = (traverseproc)out_traverse,
    .tp_clear = (inquiry)out_clear,
    .tp_dealloc = (destructor)out_dealloc,
    .tp_getattro = out_getattro,
    .tp_setattro = out_setattro,
    .tp_repr = (reprfunc)out_repr,
    .tp_methods = out_methods,
    .tp_getset = wrapper_getset,
};

PyObject *out_function(PyObject *self, PyObject *args) {
  (void)self;
  PyObject *function, *written, *module, *name;
  if (!PyArg_ParseTuple(args, "OOUU", &function, &written, &module, &name)) return NULL;
  OutFunction *made = PyObject_GC_New(OutFunction, &OutFunction_Type);
  if (!made) return NULL;
  made->base.vectorcall = out_call;
  made->base.reference = Py_NewRef(function);
  made->written = Py_NewRef(written);
  made->module = Py_NewRef(module);
  made->name = Py_NewRef(name);
  made->check = (struct argument_check){0};
  PyObject_GC_Track(made);
  return (PyObject *)made;
}

/* --- functions and methods without `out` -------------------------------------------------------------------------- */

typedef struct {
  struct wrapper base;
  PyObject *module; /* what shows the function, */
  PyObject *name;   /* and how it calls it: a pickle finds it there */
  struct argument_check check;
} CheckedFunction;

static PyObject *checked_call(PyObject *object, PyObject *const *args, size_t flags, PyObject *names) {
  CheckedFunction *self = (CheckedFunction *)object;
  if (core.intercepts && core.dispatch && is_offered(object) && !is_plain_call(args, PyVectorcall_NARGS(flags), names)) {
    PyObject *unhandled = core.unhandled, *out = call_dispatch(Py_None, object, args, PyVectorcall_NARGS(flags), names);
    if (out != unhandled) return out;
    Py_DECREF(out);
  }
  if (check_arguments(&self->check, object, args, PyVectorcall_NARGS(flags), names) < 0)
    return older_call(object, args, PyVectorcall_NARGS(flags), names);
  return call_explained(&self->base, args, flags, names);
}

static int checked_traverse(CheckedFunction *self, visitproc visit, void *arg) {
  Py_VISIT(self->base.reference);
  Py_VISIT(self->module);
  Py_VISIT(self->name);
  return 0;
}

static int checked_clear(CheckedFunction *self) {
  Py_CLEAR(self->base.reference);
  Py_CLEAR(self->module);
  Py_CLEAR(self->name);
  return 0;
}

static void checked_dealloc(CheckedFunction *self) {
  PyObject_GC_UnTrack(self);
  checked_clear(self);
  free_argument_check(&self->check);
  PyObject_GC_Del(self);
}

static int checked_setattro(PyObject *self, PyObject *name, PyObject *value) {
  return set_on_reference((struct wrapper *)self, name, value);
}

static PyObject *checked_bind(PyObject *self, PyObject *object, PyObject *type) {
  (void)type;
  return object && object != Py_None ? PyMethod_New(self, object) : Py_NewRef(self);
}

static PyObject *checked_getattro(PyObject *self, PyObject *name) {
  PyObject *module = ((CheckedFunction *)self)->module;
  if (module && PyUnicode_CompareWithASCIIString(name, "__module__") == 0) return Py_NewRef(module);
  return wrapper_getattro(self, name);
}

static PyObject *checked_reduce(PyObject *self, PyObject *unused) {
  (void)unused;
  CheckedFunction *function = (CheckedFunction *)self;
  return reference_of(&function->base) ? Py_XNewRef(function->name) : NULL;
}

/* Say what shows the function: `shown(module, name)`. */
static PyObject *checked_shown(PyObject *self, PyObject *args) {
  CheckedFunction *function = (CheckedFunction *)self;
  PyObject *module, *name;
  if (!PyArg_ParseTuple(args, "UU", &module, &name)) return NULL;
  Py_XSETREF(function->module, Py_NewRef(module));
  Py_XSETREF(function->name, Py_NewRef(name));
  Py_RETURN_NONE;
}

static PyMethodDef checked_methods[] = {
    {"__reduce__", checked_reduce, METH_NOARGS, "Pickle by name, as functions are."},
    {"shown_as", checked_shown, METH_VARARGS, "Say which module shows the function, and by which name."},
    {NULL, NULL, 0, NULL}};

static PyObject *checked_repr(CheckedFunction *self) { return repr_of_reference(&self->base); }

PyTypeObject CheckedFunction_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "backlight.kernels._native.CheckedFunction",
    .tp_basicsize = sizeof(CheckedFunction),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR,
    .tp_vectorcall_offset = offsetof(struct wrapper, vectorcall),
    .tp_call = PyVectorcall_Call,
    .tp_traverse = (traverseproc)checked_traverse,
    .tp_clear = (inquiry)checked_clear,
    .tp_dealloc = (destructor)checked_dealloc,
    .tp_getattro = checked_getattro,
    .tp_setattro = checked_setattro,
    .tp_descr_get = checked_bind,
    .tp_repr = (reprfunc)checked_repr,
    .tp_methods = checked_methods,
    .tp_getset = wrapper_getset,
};

PyObject *checked_function(PyObject *self, PyObject *args) {
  (void)self;
  PyObject *function, *module, *name;
  if (!PyArg_ParseTuple(args, "OUU", &function, &module, &name)) return NULL;
  CheckedFunction *made = PyObject_GC_New(CheckedFunction, &CheckedFunction_Type);
  if (!made) return NULL;
  made->base.vectorcall = checked_call;
  made->base.reference = Py_NewRef(function);
  made->module = Py_NewRef(module);
  made->name = Py_NewRef(name);
  made->check = (struct argument_check){0};
  PyObject_GC_Track(made);
  return (PyObject *)made;
}
