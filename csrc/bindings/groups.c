/* The Python bindings of groups.c.

   Checks the index, which the kernel checks again: another thread may write it meanwhile. NOTE [Bindings]. */
#include "bindings.h"

struct groups_job {
  const struct table *kernels;
  const char *rows, *index;
  char *total;
  long groups, count, size;
};

/* Threads share the columns, so that each number is added up by one of them, in order. */
static void sums_part(void *job, long begin, long end) {
  struct groups_job *j = job;
  j->kernels->sums_by_index(j->rows, j->index, j->total, j->groups, j->count, j->size, begin, end);
}

/* sums_by_index(rows, index, count) -> zeros with each row added at its index */
static PyObject *sums_by_index(PyObject *const *args, Py_ssize_t count) {
  int kind;
  PyArrayObject *rows = count == 3 ? plain(args[0], &kind) : NULL;
  if (!rows || !PyArray_NDIM(rows) || !PyArray_SIZE(rows)) return DECLINED;
  if (!PyArray_CheckExact(args[1]) || !PyLong_Check(args[2])) return DECLINED;
  PyArrayObject *index = (PyArrayObject *)args[1];
  if (!PyArray_ISCARRAY_RO(index) || PyArray_TYPE(index) != NPY_INT64 || PyArray_NDIM(index) != 1) return DECLINED;
  npy_intp dims[NPY_MAXDIMS], number = PyArray_DIM(rows, 0), groups = PyLong_AsSsize_t(args[2]);
  if (groups < 0 || PyArray_SIZE(index) != number) return PyErr_Clear(), DECLINED;
  const npy_int64 *at = PyArray_DATA(index);
  for (long i = 0; i < number; i++)
    if (at[i] < 0 || at[i] >= groups) return DECLINED; /* and again in the kernel: NOTE [Arrays that change] */
  memcpy(dims, PyArray_DIMS(rows), (size_t)PyArray_NDIM(rows) * sizeof *dims);
  dims[0] = groups;
  PyArrayObject *total = (PyArrayObject *)PyArray_ZEROS(PyArray_NDIM(rows), dims, kind, 0);
  if (!total) return NULL;
  struct groups_job job = {table_of(kind), PyArray_DATA(rows), (const char *)at, PyArray_DATA(total), groups, number,
                           PyArray_SIZE(rows) / number};
  run_parts(sums_part, &job, job.size, 64, PyArray_SIZE(rows));
  return (PyObject *)total;
}

const struct binding group_bindings[] = {{"sums_by_index", sums_by_index}, {NULL, NULL}};
