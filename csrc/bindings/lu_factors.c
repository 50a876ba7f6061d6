/* The Python bindings of lu_factors.c.

   Checks that both arrays may be written and that the columns lie in them. NOTE [Bindings]. */
#include "bindings.h"

struct elimination {
  const struct table *kernels;
  void *work;
  int32_t *pivots;
  long rows, columns, count, start, stop;
};

static void eliminate_part(void *job, long begin, long end) {
  struct elimination *e = job;
  e->kernels->eliminate_columns(e->work, e->pivots, begin, end, e->rows, e->columns, e->count, e->start, e->stop);
}

/* eliminate_columns(work, pivots, start, stop): work and pivots are written */
static PyObject *eliminate_columns(PyObject *const *args, Py_ssize_t count) {
  int kind;
  PyArrayObject *work = count == 4 ? plain(args[0], &kind) : NULL;
  if (!work || PyArray_NDIM(work) != 3 || !PyArray_ISWRITEABLE(work) || !PyArray_CheckExact(args[1])) return DECLINED;
  PyArrayObject *pivots = (PyArrayObject *)args[1];
  if (!PyLong_CheckExact(args[2]) || !PyLong_CheckExact(args[3])) return DECLINED;
  if (PyArray_TYPE(pivots) != NPY_INT32 || !PyArray_ISCARRAY(pivots) || PyArray_NDIM(pivots) != 2) return DECLINED;
  struct elimination e = {table_of(kind), PyArray_DATA(work), PyArray_DATA(pivots), PyArray_DIM(work, 1),
                          PyArray_DIM(work, 2), PyArray_DIM(pivots, 1), PyLong_AsLong(args[2]), PyLong_AsLong(args[3])};
  if (PyErr_Occurred()) return PyErr_Clear(), DECLINED;
  if (PyArray_DIM(pivots, 0) != PyArray_DIM(work, 0) || e.start < 0 || e.stop > e.count || e.count > e.rows || e.count > e.columns)
    return DECLINED;
  run_parts(eliminate_part, &e, PyArray_DIM(work, 0), 1 + SMALL / (e.rows * e.columns + 1), PyArray_SIZE(work));
  Py_RETURN_NONE;
}

const struct binding lu_bindings[] = {{"eliminate_columns", eliminate_columns}, {NULL, NULL}};
