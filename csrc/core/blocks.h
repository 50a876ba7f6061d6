/* What module.c registers of core/blocks.c: types for `with` blocks that leave all as it was, whenever an interrupt comes,
   and grad mode's switches. Each function is called by Python, with the GIL, and checks what it is given. */
#ifndef BLOCKS_H
#define BLOCKS_H

#include <Python.h>

int blocks_add(PyObject *module); /* its types; 0, or -1 with an exception */
PyObject *grad_setup(PyObject *self, PyObject *args);
PyObject *grad_set_recording(PyObject *self, PyObject *value);
PyObject *grad_set_recording_now(PyObject *self, PyObject *value);

#endif
