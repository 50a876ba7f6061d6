/* The Python bindings of grid_samples.c. Places outside of the planes hold 0.

   Checks all shapes; places are checked by the kernel, number by number. NOTE [Bindings]. */
#include "bindings.h"

struct sampling {
  const struct table *kernels;
  const void *first, *second;
  const int64_t *places;
  void *found;
  long batch, channels, positions, samples, taps;
};

static void sample_part(void *job, long begin, long end) {
  struct sampling *t = job;
  t->kernels->weighted_samples(t->first, t->second, t->places, t->found, begin, end, t->batch, t->channels, t->positions,
                               t->samples, t->taps);
}

static void scatter_part(void *job, long begin, long end) {
  struct sampling *t = job;
  t->kernels->scatter_samples(t->first, t->second, t->places, t->found, begin, end, t->batch, t->channels, t->positions,
                              t->samples, t->taps);
}

static void dot_part(void *job, long begin, long end) {
  struct sampling *t = job;
  t->kernels->sample_weight_dots(t->first, t->second, t->places, t->found, begin, end, t->batch, t->channels, t->positions,
                                 t->samples, t->taps);
}

/* The array if it has three dims of these sizes; any size where -1 is given. */
static PyArrayObject *solid(PyObject *object, int kind, npy_intp a, npy_intp b, npy_intp c) {
  if (!PyArray_CheckExact(object)) return NULL;
  PyArrayObject *array = (PyArrayObject *)object;
  if (PyArray_NDIM(array) != 3 || PyArray_TYPE(array) != kind || !PyArray_ISCARRAY_RO(array)) return NULL;
  const npy_intp *shape = PyArray_DIMS(array);
  return (a < 0 || shape[0] == a) && (b < 0 || shape[1] == b) && (c < 0 || shape[2] == c) ? array : NULL;
}

/* Read (batch, channels, size) and places (taps, batch, samples). */
static int read_taps(struct sampling *t, PyObject *values, PyObject *places, int *kind, PyArrayObject **first) {
  PyArrayObject *at = solid(places, NPY_INT64, -1, -1, -1);
  *first = at ? plain(values, kind) : NULL;
  if (!*first || PyArray_NDIM(*first) != 3 || PyArray_DIM(*first, 0) != PyArray_DIM(at, 1)) return 0;
  *t = (struct sampling){.kernels = table_of(*kind), .first = PyArray_DATA(*first), .places = PyArray_DATA(at),
                        .batch = PyArray_DIM(at, 1), .channels = PyArray_DIM(*first, 1), .positions = PyArray_DIM(*first, 2),
                        .samples = PyArray_DIM(at, 2), .taps = PyArray_DIM(at, 0)};
  return t->taps > 0;
}

static long work_of(const struct sampling *t) { return t->batch * t->channels * t->samples * t->taps; }

/* weighted_samples(planes, weights, places): (batch, channels, positions), (taps, batch, samples) -> (batch, channels, samples) */
static PyObject *weighted_samples(PyObject *const *args, Py_ssize_t count) {
  struct sampling t;
  int kind;
  PyArrayObject *planes;
  if (count != 3 || !read_taps(&t, args[0], args[2], &kind, &planes)) return DECLINED;
  PyArrayObject *weights = solid(args[1], kind, t.taps, t.batch, t.samples);
  if (!weights) return DECLINED;
  npy_intp shape[3] = {t.batch, t.channels, t.samples};
  PyArrayObject *found = (PyArrayObject *)PyArray_EMPTY(3, shape, kind, 0);
  if (!found) return NULL;
  t.second = PyArray_DATA(weights), t.found = PyArray_DATA(found);
  run_parts(sample_part, &t, t.batch * t.channels, 1 + SMALL / (t.samples * t.taps + 1), work_of(&t));
  return (PyObject *)found;
}

/* scatter_samples(grad, weights, places, positions): the transpose of `weighted_samples` */
static PyObject *scatter_samples(PyObject *const *args, Py_ssize_t count) {
  struct sampling t;
  int kind;
  PyArrayObject *grad;
  if (count != 4 || !read_taps(&t, args[0], args[2], &kind, &grad) || t.positions != t.samples) return DECLINED;
  PyArrayObject *weights = solid(args[1], kind, t.taps, t.batch, t.samples);
  t.positions = PyLong_CheckExact(args[3]) ? PyLong_AsLong(args[3]) : -1;
  if (PyErr_Occurred()) PyErr_Clear();
  if (!weights || t.positions < 0) return DECLINED;
  npy_intp shape[3] = {t.batch, t.channels, t.positions};
  PyArrayObject *found = (PyArrayObject *)PyArray_ZEROS(3, shape, kind, 0);
  if (!found) return NULL;
  t.second = PyArray_DATA(weights), t.found = PyArray_DATA(found);
  run_parts(scatter_part, &t, t.batch * t.channels, 1 + SMALL / (t.samples * t.taps + 1), work_of(&t));
  return (PyObject *)found;
}

/* sample_weight_dots(grad, planes, places): (taps, batch, samples) */
static PyObject *sample_weight_dots(PyObject *const *args, Py_ssize_t count) {
  struct sampling t;
  int kind;
  PyArrayObject *grad;
  if (count != 3 || !read_taps(&t, args[0], args[2], &kind, &grad) || t.positions != t.samples) return DECLINED;
  PyArrayObject *planes = solid(args[1], kind, t.batch, t.channels, -1);
  if (!planes) return DECLINED;
  npy_intp shape[3] = {t.taps, t.batch, t.samples};
  PyArrayObject *found = (PyArrayObject *)PyArray_EMPTY(3, shape, kind, 0);
  if (!found) return NULL;
  t.second = PyArray_DATA(planes), t.positions = PyArray_DIM(planes, 2), t.found = PyArray_DATA(found);
  run_parts(dot_part, &t, t.batch, 1, work_of(&t));
  return (PyObject *)found;
}

const struct binding grid_sample_bindings[] = {{"weighted_samples", weighted_samples},
                                               {"scatter_samples", scatter_samples},
                                               {"sample_weight_dots", sample_weight_dots},
                                               {NULL, NULL}};
