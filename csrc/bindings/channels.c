/* The Python bindings of channels.c and columns.c.

   Checks shapes and how channels are grouped; nothing is empty. Memory to work in is freed before it returns. NOTE
   [Bindings]. */
#include "bindings.h"
#include <stdlib.h>

struct channels_job {
  const struct table *kernels;
  const char *grad, *x, *weight, *bias;
  char *means, *inverses, *out, *sums, *dots, *slopes, *shifts; /* sums and dots: of planes; slopes and shifts: of units */
  long batch, channels, size, share, units, item;
  int kind, streams;
};

static int by_columns(const struct channels_job *j) { return j->size == 1 && !j->share; }
static long planes_of(const struct channels_job *j) { return by_columns(j) ? j->channels : j->batch * j->channels; }

static void moments_part(void *job, long begin, long end) {
  struct channels_job *j = job;
  if (by_columns(j)) j->kernels->column_moments(j->x, j->sums, j->dots, begin, end, j->batch, j->channels);
  else j->kernels->plane_moments(j->x, j->sums, j->dots, begin, end, j->size);
}

static void scaled_part(void *job, long begin, long end) {
  struct channels_job *j = job;
  if (by_columns(j))
    j->kernels->column_scaled(j->x, j->means, j->inverses, j->weight, j->bias, j->out, begin, end, j->channels);
  else
    j->kernels->plane_scaled(j->x, j->means, j->inverses, j->weight, j->bias, j->out, begin, end, j->size, j->channels,
                             j->share, j->streams);
}

static void dots_part(void *job, long begin, long end) {
  struct channels_job *j = job;
  if (by_columns(j)) j->kernels->column_dots(j->grad, j->x, j->means, j->sums, j->dots, begin, end, j->batch, j->channels);
  else j->kernels->plane_dots(j->grad, j->x, j->means, j->sums, j->dots, begin, end, j->size, j->channels, j->share);
}

static void gradients_part(void *job, long begin, long end) {
  struct channels_job *j = job;
  if (by_columns(j))
    j->kernels->column_gradients(j->grad, j->x, j->means, j->inverses, j->weight, j->slopes, j->shifts, j->out, begin, end,
                                 j->channels);
  else
    j->kernels->plane_gradients(j->grad, j->x, j->means, j->inverses, j->weight, j->slopes, j->shifts, j->out, begin, end,
                                j->size, j->channels, j->share, j->streams);
}

static long numbers_of(const struct channels_job *j) { return j->batch * j->channels * j->size; }

/* Sums over planes, or over columns of the whole batch, at least a cache line of them at a time. */
static void run_sums(part_function part, struct channels_job *j) {
  long grain = by_columns(j) ? 64 : SMALL / j->size;
  run_parts(part, j, planes_of(j), grain, numbers_of(j));
}

/* What is written plane by plane, or row by row. */
static void run_writes(part_function part, struct channels_job *j) {
  long count = by_columns(j) ? j->batch : planes_of(j);
  run_parts(part, j, count, SMALL / (numbers_of(j) / count), numbers_of(j));
}

/* One number a channel, or None: 0 where the object is neither. */
static int numbers_or_none(PyObject *object, int kind, long count, const char **data) {
  *data = NULL;
  if (object == Py_None) return 1;
  PyArrayObject *array = plain_of(object, kind);
  if (!array || PyArray_SIZE(array) != count) return 0;
  *data = PyArray_DATA(array);
  return 1;
}

static PyArrayObject *taken(struct channels_job *job, PyObject *object) {
  PyArrayObject *x = plain(object, &job->kind);
  if (!x || PyArray_NDIM(x) < 2 || !PyArray_SIZE(x)) return NULL;
  job->kernels = table_of(job->kind), job->x = PyArray_DATA(x), job->item = PyArray_ITEMSIZE(x);
  job->batch = PyArray_DIM(x, 0), job->channels = PyArray_DIM(x, 1), job->size = PyArray_SIZE(x) / (job->batch * job->channels);
  job->streams = PyArray_NBYTES(x) > STREAMED && job->size >= 64;
  return x;
}

/* Numbers of units: (1, channels, 1) or (batch, groups, 1). */
static int taken_units(struct channels_job *job, PyObject *mean_, PyObject *inverse_) {
  PyArrayObject *mean = plain_of(mean_, job->kind), *inverse = plain_of(inverse_, job->kind);
  if (!mean || !inverse || PyArray_NDIM(mean) != 3 || PyArray_DIM(mean, 2) != 1 || !same_shape(mean, inverse)) return 0;
  long first = PyArray_DIM(mean, 0), second = PyArray_DIM(mean, 1);
  if (second < 1 || job->channels % second || (first != job->batch && (first != 1 || second != job->channels))) return 0;
  int grouped = first == job->batch && (job->batch > 1 || second < job->channels);
  job->share = grouped ? job->channels / second : 0;
  job->units = first * second;
  job->means = PyArray_DATA(mean), job->inverses = PyArray_DATA(inverse);
  return 1;
}

/* channels_normalised(x, weight, bias, groups, eps) -> out, mean, inverse, variance */
static PyObject *channels_normalised(PyObject *const *args, Py_ssize_t count) {
  struct channels_job job = {0};
  PyArrayObject *x = count == 5 ? taken(&job, args[0]) : NULL;
  if (!x || !PyLong_Check(args[3]) || !PyFloat_Check(args[4])) return DECLINED;
  if (!numbers_or_none(args[1], job.kind, job.channels, &job.weight)) return DECLINED;
  if (!numbers_or_none(args[2], job.kind, job.channels, &job.bias)) return DECLINED;
  long groups = PyLong_AsLong(args[3]);
  if (groups < 0 || (groups && job.channels % groups)) return PyErr_Clear(), DECLINED;
  npy_intp dims[3] = {groups ? job.batch : 1, groups ? groups : job.channels, 1};
  job.share = groups ? job.channels / groups : 0, job.units = dims[0] * dims[1];
  PyObject *made[4] = {(PyObject *)empty_like(x), NULL, NULL, NULL};
  for (int i = 1; i < 4; i++) made[i] = made[i - 1] ? PyArray_EMPTY(3, dims, job.kind, 0) : NULL;
  char *room = made[3] ? malloc((size_t)(2 * planes_of(&job) * job.item)) : NULL;
  if (!room) {
    for (int i = 0; i < 4; i++) Py_XDECREF(made[i]);
    return PyErr_NoMemory();
  }
  job.sums = room, job.dots = room + planes_of(&job) * job.item;
  job.out = PyArray_DATA((PyArrayObject *)made[0]), job.means = PyArray_DATA((PyArrayObject *)made[1]);
  job.inverses = PyArray_DATA((PyArrayObject *)made[2]);
  run_sums(moments_part, &job);
  long members = planes_of(&job) / job.units, size = by_columns(&job) ? job.batch : job.size;
  job.kernels->unit_moments(job.sums, job.dots, PyFloat_AS_DOUBLE(args[4]), job.means, PyArray_DATA((PyArrayObject *)made[3]),
                            job.inverses, job.units, groups ? 1 : job.channels, members, job.channels, size);
  free(room);
  run_writes(scaled_part, &job);
  return Py_BuildValue("(NNNN)", made[0], made[1], made[2], made[3]);
}

/* channels_scaled(x, mean, inverse, weight, bias) -> out */
static PyObject *channels_scaled(PyObject *const *args, Py_ssize_t count) {
  struct channels_job job = {0};
  PyArrayObject *x = count == 5 ? taken(&job, args[0]) : NULL;
  if (!x || !taken_units(&job, args[1], args[2])) return DECLINED;
  if (!numbers_or_none(args[3], job.kind, job.channels, &job.weight)) return DECLINED;
  if (!numbers_or_none(args[4], job.kind, job.channels, &job.bias)) return DECLINED;
  PyArrayObject *out = empty_like(x);
  if (!out) return NULL;
  job.out = PyArray_DATA(out);
  run_writes(scaled_part, &job);
  return (PyObject *)out;
}

static PyObject *gradients_of(struct channels_job *job, PyArrayObject *x, int fixed, const int *wanted) {
  npy_intp channels = job->channels;
  long planes = planes_of(job);
  PyObject *found[3] = {wanted[0] ? (PyObject *)empty_like(x) : Py_NewRef(Py_None)};
  for (int i = 1; i < 3 && found[i - 1]; i++)
    found[i] = wanted[i] ? PyArray_EMPTY(1, &channels, job->kind, 0) : Py_NewRef(Py_None);
  char *room = found[2] ? malloc((size_t)(2 * (planes + job->units) * job->item)) : NULL;
  if (!room) {
    for (int i = 0; i < 3; i++) Py_XDECREF(found[i]);
    return PyErr_NoMemory();
  }
  job->sums = room, job->dots = room + planes * job->item;
  if (wanted[0] && !fixed) job->slopes = job->dots + planes * job->item, job->shifts = job->slopes + job->units * job->item;
  if (wanted[1] || wanted[2] || job->slopes) {
    run_sums(dots_part, job);
    job->kernels->unit_gradients(job->sums, job->dots, job->inverses, job->weight,
                                 wanted[1] ? PyArray_DATA((PyArrayObject *)found[1]) : NULL,
                                 wanted[2] ? PyArray_DATA((PyArrayObject *)found[2]) : NULL, job->slopes, job->shifts, planes,
                                 job->channels, job->share, job->units, numbers_of(job) / job->units);
  }
  if (wanted[0]) {
    job->out = PyArray_DATA((PyArrayObject *)found[0]);
    run_writes(gradients_part, job);
  }
  free(room);
  return Py_BuildValue("(NNN)", found[0], found[1], found[2]);
}

/* channels_gradients(grad, x, mean, inverse, weight, fixed, needs) -> of x, weight and bias, None where not needed */
static PyObject *channels_gradients(PyObject *const *args, Py_ssize_t count) {
  struct channels_job job = {0};
  PyArrayObject *x = count == 7 ? taken(&job, args[1]) : NULL, *grad = x ? plain_of(args[0], job.kind) : NULL;
  if (!grad || !same_shape(grad, x) || !taken_units(&job, args[2], args[3])) return DECLINED;
  if (!numbers_or_none(args[4], job.kind, job.channels, &job.weight) || !PyBool_Check(args[5])) return DECLINED;
  if (!PyTuple_CheckExact(args[6]) || PyTuple_GET_SIZE(args[6]) != 3) return DECLINED;
  int wanted[3];
  for (int i = 0; i < 3; i++) wanted[i] = PyTuple_GET_ITEM(args[6], i) == Py_True;
  job.grad = PyArray_DATA(grad);
  return gradients_of(&job, x, args[5] == Py_True, wanted);
}

const struct binding channel_bindings[] = {{"channels_normalised", channels_normalised},
                                     {"channels_scaled", channels_scaled},
                                     {"channels_gradients", channels_gradients},
                                     {NULL, NULL}};
