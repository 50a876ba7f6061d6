/* How objects are laid out that stand for Python functions, and what they share: core/op.c, core/wrappers.c and kernel.c
   make such types.

   Needs the GIL. The function may be any object, and may be gone: `reference_of` looks. Arguments are passed on
   unchecked. */
#ifndef KERNEL_H
#define KERNEL_H
#include "bindings.h"

/* How every object begins that is called in place of a Python function, and shows its name and documentation. */
struct wrapper {
  PyObject_HEAD
  vectorcallfunc vectorcall;
  PyObject *reference; /* the Python function */
};

/* The same with the check that it is still there: the garbage collector may have cleared what finalizers still call. */
static inline PyObject *reference_of(struct wrapper *self) {
  if (!self->reference) PyErr_SetString(PyExc_ReferenceError, "the function was cleared by the garbage collector");
  return self->reference;
}

static inline PyObject *call_reference(struct wrapper *self, PyObject *const *args, size_t flags, PyObject *names) {
  PyObject *reference = Py_XNewRef(reference_of(self)); /* held: an op's is exchanged while its first call runs */
  PyObject *found = reference ? PyObject_Vectorcall(reference, args, flags, names) : NULL;
  Py_XDECREF(reference);
  return found;
}

static inline PyObject *repr_of_reference(struct wrapper *self) {
  PyObject *reference = reference_of(self);
  return reference ? PyObject_Repr(reference) : NULL;
}

static inline int set_on_reference(struct wrapper *self, PyObject *name, PyObject *value) {
  PyObject *reference = reference_of(self);
  return reference ? PyObject_SetAttr(reference, name, value) : -1;
}

/* The arguments of a vectorcall as a tuple and a dict: 0, or -1 with an exception. Both are new references, or NULL. */
int gather_arguments(PyObject *const *args, Py_ssize_t count, PyObject *names, PyObject **given, PyObject **options);

PyObject *wrapper_getattro(PyObject *self, PyObject *name);
extern PyMethodDef wrapper_methods[];
extern PyGetSetDef wrapper_getset[];

extern PyTypeObject Kernel_Type;
PyObject *kernel_new(binding_function call, PyObject *reference);
#endif
