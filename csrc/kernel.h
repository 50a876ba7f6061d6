#ifndef KERNEL_H
#define KERNEL_H
#include "face.h"

/* How every object begins that is called in place of a Python function, and shows its name and documentation. */
struct stand_in {
  PyObject_HEAD
  vectorcallfunc vectorcall;
  PyObject *reference; /* the Python function */
};
PyObject *stand_in_getattro(PyObject *self, PyObject *name);
extern PyMethodDef stand_in_methods[];
extern PyGetSetDef stand_in_getset[];

extern PyTypeObject Kernel_Type;
PyObject *kernel_new(face_function call, PyObject *reference);
#endif
