/* The Python bindings of distances.c.

   Checks the shapes of all arrays against each other; `p` is 1.0 or 2.0. NOTE [Bindings]. */
#include "bindings.h"

struct pairs {
  const struct table *kernels;
  const void *grad, *x1, *x2, *out;
  void *found, *others_found;
  long rows, others, dims;
  int p;
};

static void distances_part(void *job, long begin, long end) {
  struct pairs *j = job;
  j->kernels->distances(j->x1, j->x2, j->found, begin, end, j->rows, j->others, j->dims, j->p);
}

static void gradients_part(void *job, long begin, long end) {
  struct pairs *j = job;
  j->kernels->distance_gradients(j->grad, j->x1, j->x2, j->out, j->found, j->others_found, begin, end, j->rows, j->others,
                              j->dims, j->p);
}

/* 1 or 2, or 0 */
static int order_of(PyObject *object) {
  double p = PyFloat_Check(object) ? PyFloat_AS_DOUBLE(object) : 0;
  return p == 1 ? 1 : p == 2 ? 2 : 0;
}

static PyArrayObject *batch_of(PyObject *object, int kind, npy_intp a, npy_intp b, npy_intp c) {
  PyArrayObject *array = plain_of(object, kind);
  if (!array || PyArray_NDIM(array) != 3) return NULL;
  const npy_intp *shape = PyArray_DIMS(array);
  return shape[0] == a && shape[1] == b && shape[2] == c ? array : NULL;
}

/* distances(x1, turned, p): (batch, n, dims), (batch, dims, m) -> (batch, n, m) */
static PyObject *distances(PyObject *const *args, Py_ssize_t count) {
  int kind, p = count == 3 ? order_of(args[2]) : 0;
  PyArrayObject *x1 = p ? plain(args[0], &kind) : NULL, *x2 = x1 ? plain_of(args[1], kind) : NULL;
  if (!x2 || PyArray_NDIM(x1) != 3 || PyArray_NDIM(x2) != 3) return DECLINED;
  npy_intp *first = PyArray_DIMS(x1), *second = PyArray_DIMS(x2), shape[3] = {first[0], first[1], second[2]};
  if (first[0] != second[0] || first[2] != second[1]) return DECLINED;
  PyArrayObject *found = (PyArrayObject *)PyArray_EMPTY(3, shape, kind, 0);
  if (!found) return NULL;
  struct pairs job = {.kernels = table_of(kind), .x1 = PyArray_DATA(x1), .x2 = PyArray_DATA(x2),
                      .found = PyArray_DATA(found), .rows = shape[1], .others = shape[2], .dims = first[2], .p = p};
  run_parts(distances_part, &job, shape[0] * shape[1], 1 + SMALL / (shape[2] * first[2] + 1),
            shape[0] * shape[1] * shape[2] * first[2]);
  return (PyObject *)found;
}

/* distance_gradients(grad, x1, x2, out, p): the gradients of x1 and x2 */
static PyObject *distance_gradients(PyObject *const *args, Py_ssize_t count) {
  int kind, p = count == 5 ? order_of(args[4]) : 0;
  PyArrayObject *x1 = p ? plain(args[1], &kind) : NULL, *x2 = x1 ? plain_of(args[2], kind) : NULL;
  if (!x2 || PyArray_NDIM(x1) != 3 || PyArray_NDIM(x2) != 3) return DECLINED;
  npy_intp *first = PyArray_DIMS(x1), *second = PyArray_DIMS(x2);
  if (first[0] != second[0] || first[2] != second[2]) return DECLINED;
  PyArrayObject *grad = batch_of(args[0], kind, first[0], first[1], second[1]);
  PyArrayObject *out = batch_of(args[3], kind, first[0], first[1], second[1]);
  if (!grad || !out) return DECLINED;
  PyArrayObject *gradient1 = (PyArrayObject *)PyArray_ZEROS(3, first, kind, 0);
  PyArrayObject *gradient2 = gradient1 ? (PyArrayObject *)PyArray_ZEROS(3, second, kind, 0) : NULL;
  if (!gradient2) return Py_XDECREF(gradient1), NULL;
  struct pairs job = {table_of(kind), PyArray_DATA(grad), PyArray_DATA(x1), PyArray_DATA(x2), PyArray_DATA(out),
                      PyArray_DATA(gradient1), PyArray_DATA(gradient2), first[1], second[1], first[2], p};
  run_parts(gradients_part, &job, first[0], 1, first[0] * first[1] * second[1] * first[2]);
  return Py_BuildValue("(NN)", gradient1, gradient2);
}

const struct binding distance_bindings[] = {{"distances", distances}, {"distance_gradients", distance_gradients}, {NULL, NULL}};
