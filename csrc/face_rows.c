/* The Python face of rows.c. */
#include "face.h"

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

/* Whether dim is the last one, as -1 or as its number. */
static int is_last(PyObject *dim, int dims) {
  long number = PyLong_AsLong(dim);
  if (number == -1 && PyErr_Occurred()) PyErr_Clear();
  return dims > 0 && (number == -1 || number == dims - 1);
}

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
  PyArrayObject *x = count ? plain(args[0], &kind) : NULL;
  if (!x || count > 2 || (count == 2 ? !is_last(args[1], PyArray_NDIM(x)) : !PyArray_NDIM(x))) return DECLINED;
  return over_rows(part, x, NULL, kind);
}

/* Its gradient: (grad, out, dim) */
static PyObject *gradient_of_rows(part_function part, PyObject *const *args, Py_ssize_t count) {
  int kind;
  PyArrayObject *grad = count > 1 ? plain(args[0], &kind) : NULL, *out = grad ? plain_of(args[1], kind) : NULL;
  if (!out || count > 3 || !same_shape(grad, out)) return DECLINED;
  if (count == 3 ? !is_last(args[2], PyArray_NDIM(grad)) : !PyArray_NDIM(grad)) return DECLINED;
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

const struct face row_faces[] = {{"softmax", softmax},
                                 {"log_softmax", log_softmax},
                                 {"softmax_gradient", softmax_gradient},
                                 {"log_softmax_gradient", log_softmax_gradient},
                                 {NULL, NULL}};
