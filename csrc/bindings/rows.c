/* The Python bindings of rows.c: softmax and its logarithm along the last dim, and their gradients.

   Reads the dim, which may run Python code, before it looks at arrays; checks that they are plain and of one shape.
   NOTE [Bindings]. */
#include "bindings.h"
#include <limits.h>

struct rows_job {
  const struct table *kernels;
  char *a, *b, *found;
  long size, width; /* numbers in a row; bytes in a row */
};

static void softmax_part(void *job, long begin, long end) {
  struct rows_job *j = job;
  j->kernels->softmax(j->a + begin * j->width, j->found + begin * j->width, end - begin, j->size);
}

static void log_softmax_part(void *job, long begin, long end) {
  struct rows_job *j = job;
  j->kernels->log_softmax(j->a + begin * j->width, j->found + begin * j->width, end - begin, j->size);
}

static void log_softmax_gradient_part(void *job, long begin, long end) {
  struct rows_job *j = job;
  long at = begin * j->width;
  j->kernels->log_softmax_gradient(j->a + at, j->b + at, j->found + at, end - begin, j->size);
}

static void softmax_gradient_part(void *job, long begin, long end) {
  struct rows_job *j = job;
  long at = begin * j->width;
  j->kernels->softmax_gradient(j->a + at, j->b + at, j->found + at, end - begin, j->size);
}

/* A dim's number; LONG_MIN, which no dim has, where it is none. Python code may run: it is asked before arrays are. */
static long number_of(PyObject *dim) {
  long number = PyLong_AsLong(dim);
  if (number != -1 || !PyErr_Occurred()) return number;
  PyErr_Clear();
  return LONG_MIN;
}

/* Whether a dim is the last one, as -1 or as its number. */
static int is_last(long dim, int dims) { return dims > 0 && (dim == -1 || dim == dims - 1); }

static PyObject *over_rows(part_function part, PyArrayObject *a, PyArrayObject *b, int kind) {
  PyArrayObject *found = empty_like(a);
  if (!found) return NULL;
  long size = PyArray_DIM(a, PyArray_NDIM(a) - 1), numbers = PyArray_SIZE(a);
  if (!numbers) return (PyObject *)found;
  struct rows_job job = {table_of(kind), PyArray_DATA(a), b ? PyArray_DATA(b) : NULL, PyArray_DATA(found),
                         size, size * PyArray_ITEMSIZE(a)};
  run_parts(part, &job, numbers / size, SMALL / size, numbers);
  return (PyObject *)found;
}

/* A function of rows: (x, dim) */
static PyObject *of_rows(part_function part, PyObject *const *args, Py_ssize_t count) {
  int kind;
  if (count < 1 || count > 2) return DECLINED;
  const long dim = count == 2 ? number_of(args[1]) : -1;
  PyArrayObject *x = plain(args[0], &kind);
  if (!x || !is_last(dim, PyArray_NDIM(x))) return DECLINED;
  return over_rows(part, x, NULL, kind);
}

/* Its gradient: (grad, out, dim) */
static PyObject *gradient_of_rows(part_function part, PyObject *const *args, Py_ssize_t count) {
  int kind;
  if (count < 2 || count > 3) return DECLINED;
  const long dim = count == 3 ? number_of(args[2]) : -1;
  PyArrayObject *grad = plain(args[0], &kind), *out = grad ? plain_of(args[1], kind) : NULL;
  if (!out || !same_shape(grad, out) || !is_last(dim, PyArray_NDIM(grad))) return DECLINED;
  return over_rows(part, grad, out, kind);
}

static PyObject *softmax(PyObject *const *args, Py_ssize_t count) { return of_rows(softmax_part, args, count); }
static PyObject *log_softmax(PyObject *const *args, Py_ssize_t count) { return of_rows(log_softmax_part, args, count); }
static PyObject *softmax_gradient(PyObject *const *args, Py_ssize_t count) {
  return gradient_of_rows(softmax_gradient_part, args, count);
}
static PyObject *log_softmax_gradient(PyObject *const *args, Py_ssize_t count) {
  return gradient_of_rows(log_softmax_gradient_part, args, count);
}

const struct binding row_bindings[] = {{"softmax", softmax},
                                 {"log_softmax", log_softmax},
                                 {"softmax_gradient", softmax_gradient},
                                 {"log_softmax_gradient", log_softmax_gradient},
                                 {NULL, NULL}};
