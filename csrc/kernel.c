/* `Kernel`: a native function beside its NumPy reference, which is called where the native one declines. */
#include "face.h"
#include "kernel.h"
#include <stddef.h>

typedef struct {
  PyObject_HEAD
  vectorcallfunc vectorcall;
  face_function call;
  PyObject *reference;
} Kernel;

static PyObject *kernel_call(PyObject *self, PyObject *const *args, size_t flags, PyObject *names) {
  Kernel *kernel = (Kernel *)self;
  if (!names || !PyTuple_GET_SIZE(names)) {
    PyObject *found = kernel->call(args, PyVectorcall_NARGS(flags));
    if (found || PyErr_Occurred()) return found;
  }
  return PyObject_Vectorcall(kernel->reference, args, flags, names);
}

static int kernel_traverse(Kernel *self, visitproc visit, void *arg) {
  Py_VISIT(self->reference);
  return 0;
}

static int kernel_clear(Kernel *self) {
  Py_CLEAR(self->reference);
  return 0;
}

static void kernel_dealloc(Kernel *self) {
  PyObject_GC_UnTrack(self);
  Py_CLEAR(self->reference);
  PyObject_GC_Del(self);
}

/* Its name, documentation and module are the reference's. */
static PyObject *kernel_getattro(PyObject *self, PyObject *name) {
  PyObject *found = PyObject_GenericGetAttr(self, name);
  if (found || !PyErr_ExceptionMatches(PyExc_AttributeError)) return found;
  PyErr_Clear();
  return PyObject_GetAttr(((Kernel *)self)->reference, name);
}

static PyObject *kernel_repr(Kernel *self) { return PyUnicode_FromFormat("<native %R>", self->reference); }

static PyObject *kernel_reduce(PyObject *self, PyObject *unused) {
  (void)unused;
  return PyObject_GetAttrString(((Kernel *)self)->reference, "__qualname__");
}

static PyMethodDef kernel_methods[] = {
    {"__reduce__", kernel_reduce, METH_NOARGS, "Pickle by name, as functions are."}, {NULL, NULL, 0, NULL}};

static PyObject *kernel_document(PyObject *self, void *unused) {
  (void)unused;
  return PyObject_GetAttrString(((Kernel *)self)->reference, "__doc__");
}

static PyObject *kernel_reference(PyObject *self, void *unused) {
  (void)unused;
  return Py_NewRef(((Kernel *)self)->reference);
}

static PyGetSetDef kernel_getset[] = {{"__doc__", kernel_document, NULL, NULL, NULL},
                                      {"__wrapped__", kernel_reference, NULL, "The NumPy reference.", NULL},
                                      {NULL, NULL, NULL, NULL, NULL}};

PyTypeObject Kernel_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "backlight.kernels._native.Kernel",
    .tp_basicsize = sizeof(Kernel),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_vectorcall_offset = offsetof(Kernel, vectorcall),
    .tp_call = PyVectorcall_Call,
    .tp_traverse = (traverseproc)kernel_traverse,
    .tp_clear = (inquiry)kernel_clear,
    .tp_dealloc = (destructor)kernel_dealloc,
    .tp_getattro = kernel_getattro,
    .tp_repr = (reprfunc)kernel_repr,
    .tp_methods = kernel_methods,
    .tp_getset = kernel_getset,
};

PyObject *kernel_new(face_function call, PyObject *reference) {
  Kernel *made = PyObject_GC_New(Kernel, &Kernel_Type);
  if (!made) return NULL;
  made->vectorcall = kernel_call;
  made->call = call;
  made->reference = Py_NewRef(reference);
  PyObject_GC_Track(made);
  return (PyObject *)made;
}
