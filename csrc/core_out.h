#ifndef CORE_OUT_H
#define CORE_OUT_H
#include <Python.h>

extern PyTypeObject OutFunction_Type;

/* Return an OutFunction for (the function, what is called where `out` is given, its module's name, its name there). */
PyObject *out_function(PyObject *self, PyObject *args);

/* core_override(ask or None): what every OutFunction asks before a call. */
PyObject *core_override(PyObject *self, PyObject *ask);
#endif
