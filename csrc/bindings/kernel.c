/* Objects that stand for Python functions; of these, `Kernel`: a native function beside its NumPy reference, which is
   called where the native one declines.

   Called with the GIL and any arguments; the bindings check them. The garbage collector may have cleared an object
   that finalizers still call: then a ReferenceError is raised. */
#include "bindings.h"
#include "kernel.h"
#include <stddef.h>

int gather_arguments(PyObject *const *args, Py_ssize_t count, PyObject *names, PyObject **given, PyObject **options) {
  const Py_ssize_t named = names ? PyTuple_GET_SIZE(names) : 0;
  *options = NULL;
  *given = PyTuple_New(count);
  if (!*given) return -1;
  for (Py_ssize_t i = 0; i < count; i++) PyTuple_SET_ITEM(*given, i, Py_NewRef(args[i])); /* before the collector may run */
  *options = PyDict_New();
  int failed = !*options;
  for (Py_ssize_t i = 0; !failed && i < named; i++)
    failed = PyDict_SetItem(*options, PyTuple_GET_ITEM(names, i), args[count + i]) < 0;
  return failed ? -1 : 0;
}

/* Its name, module and all other attributes are the function's. */
PyObject *wrapper_getattro(PyObject *self, PyObject *name) {
  PyObject *found = PyObject_GenericGetAttr(self, name);
  if (found || !PyErr_ExceptionMatches(PyExc_AttributeError)) return found;
  PyErr_Clear();
  PyObject *reference = reference_of((struct wrapper *)self);
  return reference ? PyObject_GetAttr(reference, name) : NULL;
}

static PyObject *wrapper_reduce(PyObject *self, PyObject *unused) {
  (void)unused;
  PyObject *reference = reference_of((struct wrapper *)self);
  return reference ? PyObject_GetAttrString(reference, "__qualname__") : NULL;
}

static PyObject *wrapper_document(PyObject *self, void *unused) {
  (void)unused;
  PyObject *reference = reference_of((struct wrapper *)self);
  return reference ? PyObject_GetAttrString(reference, "__doc__") : NULL;
}

static PyObject *wrapper_wrapped(PyObject *self, void *unused) {
  (void)unused;
  return Py_XNewRef(reference_of((struct wrapper *)self));
}

PyMethodDef wrapper_methods[] = {{"__reduce__", wrapper_reduce, METH_NOARGS, "Pickle by name, as functions are."},
                                  {NULL, NULL, 0, NULL}};

PyGetSetDef wrapper_getset[] = {{"__doc__", wrapper_document, NULL, NULL, NULL},
                                 {"__wrapped__", wrapper_wrapped, NULL, "The Python function.", NULL},
                                 {NULL, NULL, NULL, NULL, NULL}};

/* --- kernels ------------------------------------------------------------------------------------------------------ */

typedef struct {
  struct wrapper base;
  binding_function call;
} Kernel;

static PyObject *kernel_call(PyObject *self, PyObject *const *args, size_t flags, PyObject *names) {
  Kernel *kernel = (Kernel *)self;
  if (!names || !PyTuple_GET_SIZE(names)) {
    PyObject *found = kernel->call(args, PyVectorcall_NARGS(flags));
    if (found || PyErr_Occurred()) return found;
  }
  return call_reference(&kernel->base, args, flags, names);
}

static int kernel_traverse(Kernel *self, visitproc visit, void *arg) {
  Py_VISIT(self->base.reference);
  return 0;
}

static int kernel_clear(Kernel *self) {
  Py_CLEAR(self->base.reference);
  return 0;
}

static void kernel_dealloc(Kernel *self) {
  PyObject_GC_UnTrack(self);
  Py_CLEAR(self->base.reference);
  PyObject_GC_Del(self);
}

static PyObject *kernel_repr(Kernel *self) {
  PyObject *reference = reference_of(&self->base);
  return reference ? PyUnicode_FromFormat("<native %R>", reference) : NULL;
}

PyTypeObject Kernel_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "backlight.kernels._native.Kernel",
    .tp_basicsize = sizeof(Kernel),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_vectorcall_offset = offsetof(struct wrapper, vectorcall),
    .tp_call = PyVectorcall_Call,
    .tp_traverse = (traverseproc)kernel_traverse,
    .tp_clear = (inquiry)kernel_clear,
    .tp_dealloc = (destructor)kernel_dealloc,
    .tp_getattro = wrapper_getattro,
    .tp_repr = (reprfunc)kernel_repr,
    .tp_methods = wrapper_methods,
    .tp_getset = wrapper_getset,
};

PyObject *kernel_new(binding_function call, PyObject *reference) {
  Kernel *made = PyObject_GC_New(Kernel, &Kernel_Type);
  if (!made) return NULL;
  made->base.vectorcall = kernel_call;
  made->call = call;
  made->base.reference = Py_NewRef(reference);
  PyObject_GC_Track(made);
  return (PyObject *)made;
}
