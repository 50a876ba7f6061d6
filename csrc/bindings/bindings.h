/* What the Python bindings of each family need: arrays taken and made, the level's table, threads.

   NOTE [Bindings]
   A binding is `PyObject *name(PyObject *const *args, Py_ssize_t count)`, called by kernel.c with the GIL and any
   arguments, which the caller holds. It returns a new reference, NULL with an exception (no memory), or NULL without
   one: "declined", and then the NumPy reference of the same name is called. So it never fails on what it does not
   know. It checks all that its kernels assume, runs no Python code between a check and the use of what was checked,
   and may release the GIL only while kernels run. */
#ifndef BINDINGS_H
#define BINDINGS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
/* NumPy's headers declare only what the oldest NumPy of this version has, by default one before NEP 49's functions. */
#define NPY_TARGET_VERSION NPY_2_0_API_VERSION
#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL backlight_arrays
#ifndef BINDINGS_IMPORT_ARRAY
#define NO_IMPORT_ARRAY
#endif
#include <numpy/arrayobject.h>

#include "pool.h"
#include "table.h"

typedef PyObject *(*binding_function)(PyObject *const *args, Py_ssize_t count);
struct binding {
  const char *name;
  binding_function call;
};

/* NOTE [Arrays that change]
   Another thread may write an array while a kernel reads it: whenever the interpreter is not locked, and in code that
   calls Python. The values may then be anything, but no place that a kernel reads or writes may depend on them unchecked.
   So an index is read once, into a variable or a buffer of the kernel's own, and what was read is checked and used.
   Memory does not go away: the caller holds references to the arguments, and NumPy resizes no array with others. */
#define DECLINED NULL
#define SMALL 4096 /* numbers; less work than this is done by one thread, with the interpreter locked */

/* Whether an object is a NumPy array, in C order, aligned, of float or double (`kind`: NPY_FLOAT or NPY_DOUBLE). */
static inline PyArrayObject *plain(PyObject *object, int *kind) {
  if (!PyArray_CheckExact(object)) return NULL;
  PyArrayObject *array = (PyArrayObject *)object;
  *kind = PyArray_TYPE(array);
  if (*kind != NPY_FLOAT && *kind != NPY_DOUBLE) return NULL;
  return PyArray_ISCARRAY_RO(array) ? array : NULL;
}

static inline PyArrayObject *plain_of(PyObject *object, int kind) {
  int own;
  PyArrayObject *array = plain(object, &own);
  return array && own == kind ? array : NULL;
}

static inline const struct table *table_of(int kind) { return kind == NPY_FLOAT ? kernels_of_float : kernels_of_double; }

static inline PyArrayObject *empty_like(PyArrayObject *array) {
  return (PyArrayObject *)PyArray_EMPTY(PyArray_NDIM(array), PyArray_DIMS(array), PyArray_TYPE(array), 0);
}

static inline int same_shape(PyArrayObject *a, PyArrayObject *b) {
  return PyArray_NDIM(a) == PyArray_NDIM(b) && PyArray_CompareLists(PyArray_DIMS(a), PyArray_DIMS(b), PyArray_NDIM(a));
}

/* Run parts of a job; large ones on all threads, and without the interpreter's lock. `numbers` is the whole work. */
static inline void run_parts(part_function run, void *job, long count, long grain, long numbers) {
  if (numbers <= SMALL) {
    if (count) run(job, 0, count);
    return;
  }
  Py_BEGIN_ALLOW_THREADS;
  pool_run(run, job, count, grain < 1 ? 1 : grain);
  Py_END_ALLOW_THREADS;
}

#endif
