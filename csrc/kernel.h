#ifndef KERNEL_H
#define KERNEL_H
#include "face.h"
extern PyTypeObject Kernel_Type;
PyObject *kernel_new(face_function call, PyObject *reference);
#endif
