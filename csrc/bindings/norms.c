/* The Python bindings of norms.c.

   Checks sizes against each other; no row is empty. Memory to work in is freed before it returns. NOTE [Bindings]. */
#include "bindings.h"
#include <stdlib.h>

#define PARTS 32 /* of a sum over rows: as many at any number of threads, so that the digits are the same */

struct norms_job {
  const struct table *kernels;
  const char *grad, *x, *weight, *bias;
  char *means, *inverses, *found, *scales, *shifts, *total;
  double eps;
  long rows, size, step, item; /* step: rows of a part */
  int streams;
};

static void normalised_part(void *job, long begin, long end) {
  struct norms_job *j = job;
  j->kernels->normalised(j->x, j->weight, j->bias, j->eps, j->found, j->means, j->inverses, begin, end, j->size, j->streams);
}

/* Columns of numbers, as many as x has, or None: 0 where the object is neither. */
static int columns_or_none(PyObject *object, int kind, long size, const char **data) {
  *data = NULL;
  if (object == Py_None) return 1;
  PyArrayObject *array = plain_of(object, kind);
  if (!array || PyArray_SIZE(array) != size) return 0;
  *data = PyArray_DATA(array);
  return 1;
}

/* normalised(x, size, weight, bias, eps, centred) -> out, mean or None, inverse */
static PyObject *normalised(PyObject *const *args, Py_ssize_t count) {
  int kind;
  PyArrayObject *x = count == 6 ? plain(args[0], &kind) : NULL;
  if (!x || !PyArray_SIZE(x) || !PyLong_Check(args[1]) || !PyFloat_Check(args[4]) || !PyBool_Check(args[5])) return DECLINED;
  long size = PyLong_AsLong(args[1]);
  if (size < 1 || PyArray_SIZE(x) % size) return PyErr_Clear(), DECLINED;
  npy_intp rows[2] = {PyArray_SIZE(x) / size, 1};
  struct norms_job job = {.kernels = table_of(kind), .x = PyArray_DATA(x), .eps = PyFloat_AS_DOUBLE(args[4]),
                          .rows = rows[0], .size = size, .item = PyArray_ITEMSIZE(x)};
  if (!columns_or_none(args[2], kind, size, &job.weight) || !columns_or_none(args[3], kind, size, &job.bias)) return DECLINED;
  PyObject *out = (PyObject *)empty_like(x), *inverse = out ? PyArray_EMPTY(2, rows, kind, 0) : NULL;
  PyObject *mean = !inverse ? NULL : args[5] == Py_True ? PyArray_EMPTY(2, rows, kind, 0) : Py_NewRef(Py_None);
  if (!mean) {
    Py_XDECREF(out), Py_XDECREF(inverse);
    return NULL;
  }
  job.found = PyArray_DATA((PyArrayObject *)out), job.inverses = PyArray_DATA((PyArrayObject *)inverse);
  if (mean != Py_None) job.means = PyArray_DATA((PyArrayObject *)mean);
  job.streams = PyArray_NBYTES(x) > STREAMED;
  run_parts(normalised_part, &job, job.rows, SMALL / size, PyArray_SIZE(x));
  return Py_BuildValue("(NNN)", out, mean, inverse);
}

/* Parts begin..end, each of `step` rows, adding columns into sums of their own. */
static void gradients_part(void *job, long begin, long end) {
  struct norms_job *j = job;
  for (long part = begin; part < end; part++) {
    long first = part * j->step, last = first + j->step < j->rows ? first + j->step : j->rows, at = part * j->size * j->item;
    char *scales = j->scales ? j->scales + at : NULL, *shifts = j->shifts ? j->shifts + at : NULL;
    if (scales) memset(scales, 0, (size_t)(j->size * j->item));
    if (shifts) memset(shifts, 0, (size_t)(j->size * j->item));
    j->kernels->normalised_gradients(j->grad, j->x, j->means, j->inverses, j->weight, j->found, scales, shifts, first, last,
                                     j->size, j->streams);
  }
}

/* An array of columns with the sum of all parts. */
static PyObject *added(struct norms_job *job, const char *parts, long count, int kind) {
  npy_intp size = job->size;
  PyObject *total = PyArray_EMPTY(1, &size, kind, 0);
  if (total) job->kernels->add_parts(parts, PyArray_DATA((PyArrayObject *)total), count, size, 0, size);
  return total;
}

static PyObject *gradients_of(struct norms_job *job, PyArrayObject *x, int kind, const int *wanted) {
  long parts = (job->rows + job->step - 1) / job->step;
  size_t bytes = (size_t)(parts * job->size * job->item);
  PyObject *found[3] = {NULL, NULL, NULL};
  if (wanted[0] && !(found[0] = (PyObject *)empty_like(x))) return NULL;
  char *room = wanted[1] || wanted[2] ? malloc(2 * bytes) : NULL;
  if ((wanted[1] || wanted[2]) && !room) {
    Py_XDECREF(found[0]);
    return PyErr_NoMemory();
  }
  if (wanted[0]) job->found = PyArray_DATA((PyArrayObject *)found[0]);
  if (wanted[1]) job->scales = room;
  if (wanted[2]) job->shifts = room + bytes;
  job->streams = PyArray_NBYTES(x) > STREAMED;
  run_parts(gradients_part, job, parts, 1, PyArray_SIZE(x));
  int failed = wanted[1] && !(found[1] = added(job, job->scales, parts, kind));
  failed = failed || (wanted[2] && !(found[2] = added(job, job->shifts, parts, kind)));
  free(room);
  for (int i = 0; i < 3; i++)
    if (!found[i]) found[i] = Py_NewRef(Py_None);
  PyObject *all = failed ? NULL : PyTuple_Pack(3, found[0], found[1], found[2]);
  for (int i = 0; i < 3; i++) Py_DECREF(found[i]);
  return all;
}

/* normalised_gradients(grad, x, mean or None, inverse, weight, needs) -> of x, weight and bias, None where not needed */
static PyObject *normalised_gradients(PyObject *const *args, Py_ssize_t count) {
  int kind, wanted[3];
  PyArrayObject *grad = count == 6 ? plain(args[0], &kind) : NULL, *x = grad ? plain_of(args[1], kind) : NULL;
  if (!x || !PyArray_SIZE(x) || !same_shape(grad, x) || !PyArray_CheckExact(args[3])) return DECLINED;
  if (!PyTuple_CheckExact(args[5]) || PyTuple_GET_SIZE(args[5]) != 3) return DECLINED;
  for (int i = 0; i < 3; i++) wanted[i] = PyTuple_GET_ITEM(args[5], i) == Py_True;
  long rows = PyArray_SIZE((PyArrayObject *)args[3]), size = rows ? PyArray_SIZE(x) / rows : 0;
  if (!size || rows * size != PyArray_SIZE(x)) return DECLINED;
  struct norms_job job = {.kernels = table_of(kind), .grad = PyArray_DATA(grad), .x = PyArray_DATA(x),
                          .rows = rows, .size = size, .item = PyArray_ITEMSIZE(x)};
  const char *means, *inverses;
  if (!columns_or_none(args[2], kind, rows, &means) || !columns_or_none(args[3], kind, rows, &inverses)) return DECLINED;
  if (!inverses || !columns_or_none(args[4], kind, size, &job.weight)) return DECLINED;
  job.means = (char *)means, job.inverses = (char *)inverses;
  long least = SMALL / size + 1;
  job.step = (rows + PARTS - 1) / PARTS < least ? least : (rows + PARTS - 1) / PARTS;
  return gradients_of(&job, x, kind, wanted);
}

const struct binding norm_bindings[] = {
    {"normalised", normalised}, {"normalised_gradients", normalised_gradients}, {NULL, NULL}};
