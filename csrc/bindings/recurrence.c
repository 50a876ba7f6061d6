/* The Python bindings of recurrence.c. A step takes matrices of as many rows, writes in place, and returns None.

   Checks that all arrays are writable and have the columns that their gates make up. NOTE [Bindings]. */
#include <stddef.h>

#include "bindings.h"

struct rows_of_step {
  void (*run)(void *const *arrays, long size, long begin, long end);
  void *arrays[ROW_ARRAYS];
  long size;
};

static void rows_part(void *job, long begin, long end) {
  struct rows_of_step *j = job;
  j->run(j->arrays, j->size, begin, end);
}

/* `gates`: a digit for each array, how many gates its rows have. */
static PyObject *take_rows(PyObject *const *args, Py_ssize_t count, const char *gates, size_t kernel) {
  struct rows_of_step job = {0};
  int kind;
  long rows = 0;
  if (count != (Py_ssize_t)strlen(gates) || !plain(args[0], &kind)) return DECLINED;
  for (int i = 0; i < count; i++) {
    PyArrayObject *array = plain_of(args[i], kind);
    if (!array || PyArray_NDIM(array) != 2 || !PyArray_ISWRITEABLE(array)) return DECLINED;
    if (!i) rows = PyArray_DIM(array, 0), job.size = PyArray_DIM(array, 1) / (gates[0] - '0');
    if (PyArray_DIM(array, 0) != rows || PyArray_DIM(array, 1) != job.size * (gates[i] - '0')) return DECLINED;
    job.arrays[i] = PyArray_DATA(array);
  }
  job.run = *(void (*const *)(void *const *, long, long, long))((const char *)table_of(kind) + kernel);
  if (job.size) run_parts(rows_part, &job, rows, SMALL / job.size, rows * job.size);
  Py_RETURN_NONE;
}

#define FACE(name, gates)                                                       \
  static PyObject *name(PyObject *const *args, Py_ssize_t count) {              \
    return take_rows(args, count, gates, offsetof(struct table, name));         \
  }
FACE(lstm_step, "44111")
FACE(lstm_step_gradient, "114114")
FACE(gru_step, "33111")
FACE(gru_step_gradient, "1311331")

const struct binding recurrence_bindings[] = {{"lstm_step", lstm_step},
                                        {"lstm_step_gradient", lstm_step_gradient},
                                        {"gru_step", gru_step},
                                        {"gru_step_gradient", gru_step_gradient},
                                        {NULL, NULL}};
