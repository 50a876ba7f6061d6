/* The Python bindings of topk.c.

   Checks that a row has as many numbers as are asked for. NOTE [Bindings]. */
#include "bindings.h"

struct top_job {
  const struct table *kernels;
  const void *x;
  int64_t *places;
  long size, count;
  int largest;
};

static void top_part(void *job, long begin, long end) {
  struct top_job *j = job;
  j->kernels->top_places(j->x, j->places, begin, end, j->size, j->count, j->largest);
}

/* top_places(rows, count, largest) */
static PyObject *top_places(PyObject *const *args, Py_ssize_t count) {
  int kind;
  PyArrayObject *rows = count == 3 ? plain(args[0], &kind) : NULL;
  if (!rows || PyArray_NDIM(rows) != 2 || !PyLong_CheckExact(args[1]) || !PyBool_Check(args[2])) return DECLINED;
  long size = PyArray_DIM(rows, 1), wanted = PyLong_AsLong(args[1]);
  if (wanted == -1 && PyErr_Occurred()) PyErr_Clear();
  if (wanted < 1 || wanted > size || wanted > MOST_OF_TOPK) return DECLINED;
  npy_intp shape[2] = {PyArray_DIM(rows, 0), wanted};
  PyArrayObject *found = (PyArrayObject *)PyArray_EMPTY(2, shape, NPY_INT64, 0);
  if (!found) return NULL;
  struct top_job job = {table_of(kind), PyArray_DATA(rows), PyArray_DATA(found), size, wanted, args[2] == Py_True};
  run_parts(top_part, &job, shape[0], 1 + SMALL / (size + 1), shape[0] * size);
  return (PyObject *)found;
}

const struct binding topk_bindings[] = {{"top_places", top_places}, {NULL, NULL}};
