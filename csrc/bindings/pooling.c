/* The Python bindings of pooling.c. Inputs are (batch, channels, *sizes) with one to three sizes.

   Checks every size and product of sizes for overflow before memory is taken for it, and frees it all before it
   returns. NOTE [Bindings]. */
#include "bindings.h"
#include <limits.h>

#define MOST_COPIED (1l << 40) /* numbers: no machine has memory for more, and products of these with sizes of items fit */

struct pooling_job {
  const struct table *kernels;
  struct pooling pooling;
  struct bins bins;
  const void *from;
  void *to;
  int64_t *indices, *flat;
  long planes, item, scratch; /* numbers of scratch that a part needs */
  long *steps;                /* all that the structures point to */
  double *counts;
  void(*run)(const struct pooling_job *job, void *scratch, long begin, long end);
  int failed;
};

static void run_planes(void *given, long begin, long end) {
  struct pooling_job *job = given;
  void *scratch = malloc((size_t)((job->scratch + 1) * job->item));
  if (scratch) job->run(job, scratch, begin, end);
  else __atomic_store_n(&job->failed, 1, __ATOMIC_RELAXED);
  free(scratch);
}

static void run_largest(const struct pooling_job *j, void *scratch, long begin, long end) {
  j->kernels->windows_largest(&j->pooling, j->from, j->to, j->indices, j->flat, scratch, begin, end);
}
static void run_means(const struct pooling_job *j, void *scratch, long begin, long end) {
  j->kernels->windows_means(&j->pooling, j->from, j->to, scratch, begin, end);
}
static void run_shared(const struct pooling_job *j, void *scratch, long begin, long end) {
  j->kernels->windows_shared(&j->pooling, j->from, j->to, scratch, begin, end);
}
static void run_bins_largest(const struct pooling_job *j, void *scratch, long begin, long end) {
  (void)scratch;
  j->kernels->bins_largest(&j->bins, j->from, j->to, j->indices, j->flat, begin, end);
}
static void run_bins_means(const struct pooling_job *j, void *scratch, long begin, long end) {
  j->kernels->bins_means(&j->bins, j->from, j->to, scratch, begin, end);
}
static void run_bins_shared(const struct pooling_job *j, void *scratch, long begin, long end) {
  j->kernels->bins_shared(&j->bins, j->from, j->to, scratch, begin, end);
}

/* Read a tuple of whole numbers, `least` or more, into the last of three places; whether it is one of `dims`. */
static int read_dims(PyObject *tuple, int dims, long missing, long least, long *found) {
  if (!PyTuple_Check(tuple) || PyTuple_GET_SIZE(tuple) != dims) return 0;
  for (int dim = 0; dim < POOLED_DIMS - dims; dim++) found[dim] = missing;
  for (int dim = 0; dim < dims; dim++) {
    PyObject *one = PyTuple_GET_ITEM(tuple, dim);
    long value = PyLong_CheckExact(one) ? PyLong_AsLong(one) : -1;
    if (PyErr_Occurred()) PyErr_Clear();
    if (value < least) return 0;
    found[POOLED_DIMS - dims + dim] = value;
  }
  return 1;
}

/* The product of three numbers; LONG_MAX where it would not fit. */
static long product_of(const long *numbers) {
  long found;
  if (__builtin_mul_overflow(numbers[0], numbers[1], &found) || __builtin_mul_overflow(found, numbers[2], &found)) return LONG_MAX;
  return found;
}

/* Whether all of three numbers are below 2^31: then they can be multiplied in pairs. */
static int are_small(const long *numbers) { return numbers[0] < INT32_MAX && numbers[1] < INT32_MAX && numbers[2] < INT32_MAX; }

/* (batch, channels, *sizes) as planes; its sizes go to `found`. */
static PyArrayObject *planes_of(struct pooling_job *job, PyObject *object, long *found, int *kind) {
  PyArrayObject *array = plain(object, kind);
  int dims = array ? PyArray_NDIM(array) - 2 : 0;
  if (dims < 1 || dims > POOLED_DIMS) return NULL;
  for (int dim = 0; dim < POOLED_DIMS; dim++)
    found[dim] = dim < POOLED_DIMS - dims ? 1 : PyArray_DIM(array, 2 + dim - (POOLED_DIMS - dims));
  job->kernels = table_of(*kind), job->item = PyArray_ITEMSIZE(array), job->from = PyArray_DATA(array);
  job->planes = PyArray_DIM(array, 0) * PyArray_DIM(array, 1);
  return array;
}

static PyArrayObject *new_planes(PyArrayObject *like, const long *sizes, int kind) {
  int dims = PyArray_NDIM(like) - 2;
  npy_intp shape[2 + POOLED_DIMS] = {PyArray_DIM(like, 0), PyArray_DIM(like, 1)};
  for (int dim = 0; dim < dims; dim++) shape[2 + dim] = sizes[POOLED_DIMS - dims + dim];
  return (PyArrayObject *)PyArray_EMPTY(dims + 2, shape, kind, 0);
}

static void free_job(struct pooling_job *job) {
  free(job->steps);
  free(job->counts);
}

/* What a job made, unless memory ran out. */
static PyObject *finished(struct pooling_job *job, PyArrayObject *out, long work) {
  if (out) {
    job->to = PyArray_DATA(out);
    run_parts(run_planes, job, job->planes, 1 + SMALL / (work / (job->planes + 1) + 1), work);
  }
  free_job(job);
  if (!job->failed) return (PyObject *)out;
  Py_XDECREF(out);
  return PyErr_NoMemory();
}

/* The same, with where the largest lie: in their planes, in the whole array. */
static PyObject *with_indices(struct pooling_job *job, PyArrayObject *input, const long *places, int kind, long work) {
  PyArrayObject *indices = new_planes(input, places, NPY_INT64), *flat = indices ? new_planes(input, places, NPY_INT64) : NULL;
  PyArrayObject *values = flat ? new_planes(input, places, kind) : NULL;
  if (values) job->indices = PyArray_DATA(indices), job->flat = PyArray_DATA(flat);
  PyObject *found = finished(job, values, work);
  if (found) return Py_BuildValue("NNN", found, indices, flat);
  Py_XDECREF(indices);
  Py_XDECREF(flat);
  return NULL;
}

/* --- windows --------------------------------------------------------------------------------------------------------- */

/* Read (kernel, stride, padding, dilation, …); sizes and places are known. */
static int read_windows(struct pooling *p, PyObject *windows, int dims) {
  if (!PyTuple_Check(windows) || PyTuple_GET_SIZE(windows) < 4) return 0;
  long *into[] = {p->kernel, p->stride, p->padding, p->dilation};
  for (int i = 0; i < 4; i++)
    if (!read_dims(PyTuple_GET_ITEM(windows, i), dims, i != 2, i != 2, into[i])) return 0;
  p->plane = product_of(p->size), p->area = product_of(p->places), p->taps = product_of(p->kernel);
  for (int i = 0; i < 4; i++)
    if (!are_small(into[i])) return 0;
  return p->plane > 0 && p->plane < INT32_MAX && p->area > 0 && p->area < LONG_MAX && are_small(p->places) &&
         p->taps <= MOST_POOLED && p->stride[2] <= 16;
}

/* Lay out the copy and where the kernel meets it. 1; 0 where the copy is too large, which is left to NumPy; -1: no memory. */
static int meet_windows(struct pooling_job *job) {
  struct pooling *p = &job->pooling;
  for (int dim = 0; dim < POOLED_DIMS; dim++) {
    long reach = (p->places[dim] - 1) * p->stride[dim] + p->dilation[dim] * (p->kernel[dim] - 1) + 1;
    long own = p->padding[dim] + p->size[dim];
    p->padded[dim] = reach > own ? reach : own;
  }
  long lanes = job->kernels->slide_tiles().lanes, width = (p->places[2] + lanes - 1) / lanes * lanes;
  p->strand = p->padded[2] / p->stride[2] + 1 + lanes, p->row = p->stride[2] * p->strand; /* padded < 2^62, stride <= 16 */
  const long copy[] = {p->padded[0], p->padded[1], p->row};
  if (product_of(copy) > MOST_COPIED || width > MOST_COPIED) return 0;
  job->scratch = product_of(copy) + 2 * width + lanes;
  long *steps = job->steps = malloc((size_t)(2 * p->taps) * sizeof *steps);
  if (!steps) return -1;
  p->met = steps, p->step = steps + p->taps;
  for (long tap = 0; tap < p->taps; tap++) {
    long column = tap % p->kernel[2] * p->dilation[2], line = tap / p->kernel[2] % p->kernel[1] * p->dilation[1];
    long depth = tap / p->kernel[2] / p->kernel[1] * p->dilation[0];
    steps[tap] = (depth * p->padded[1] + line) * p->row + column % p->stride[2] * p->strand + column / p->stride[2];
    steps[p->taps + tap] = (depth * p->size[1] + line) * p->size[2] + column;
  }
  return 1;
}

/* Declines, or says that there is no memory, after `meet_windows`. */
static PyObject *not_met(int met) { return met < 0 ? PyErr_NoMemory() : DECLINED; }

static long work_of(const struct pooling_job *job) {
  return job->planes * (job->pooling.plane + job->pooling.area * job->pooling.taps);
}

/* largest_in_windows(input, windows, places) */
static PyObject *largest_in_windows(PyObject *const *args, Py_ssize_t count) {
  struct pooling_job job = {.run = run_largest};
  int kind;
  PyArrayObject *input = count == 3 ? planes_of(&job, args[0], job.pooling.size, &kind) : NULL;
  int dims = input ? PyArray_NDIM(input) - 2 : 0;
  if (!input || !read_dims(args[2], dims, 1, 1, job.pooling.places) || !read_windows(&job.pooling, args[1], dims))
    return DECLINED;
  int met = meet_windows(&job);
  if (met < 1) return not_met(met);
  return with_indices(&job, input, job.pooling.places, kind, work_of(&job));
}

/* How many elements each window has along each dim, or one divisor for all. */
static int count_elements(struct pooling_job *job, PyObject *with_padding, PyObject *divisor) {
  struct pooling *p = &job->pooling;
  double *counts = job->counts = malloc((size_t)(p->places[0] + p->places[1] + p->places[2]) * sizeof *counts);
  if (!counts) return 0;
  for (int dim = 0; dim < POOLED_DIMS; counts += p->places[dim++]) {
    p->count[dim] = counts;
    for (long i = 0; i < p->places[dim]; i++) {
      long start = i * p->stride[dim] - p->padding[dim], stop = start + p->kernel[dim], size = p->size[dim];
      if (stop > size + p->padding[dim]) stop = size + p->padding[dim];
      if (with_padding != Py_True) start = start < 0 ? 0 : start, stop = stop > size ? size : stop;
      counts[i] = divisor == Py_None ? (double)(stop - start) : dim < 2 ? 1 : (double)PyLong_AsLong(divisor);
    }
  }
  return 1;
}

static int is_divisor(PyObject *with_padding, PyObject *divisor) {
  if (with_padding != Py_True && with_padding != Py_False) return 0;
  if (divisor == Py_None) return 1;
  long value = PyLong_CheckExact(divisor) ? PyLong_AsLong(divisor) : 0;
  if (PyErr_Occurred()) PyErr_Clear();
  return value > 0 && value < 1 << 24;
}

/* means_in_windows(input, windows, places, with_padding, divisor); back: `sizes` for places, and grad for input */
static PyObject *means_or_shares(PyObject *const *args, Py_ssize_t count, int back) {
  struct pooling_job job = {.run = back ? run_shared : run_means};
  struct pooling *p = &job.pooling;
  int kind;
  PyArrayObject *from = count == 5 ? planes_of(&job, args[0], back ? p->places : p->size, &kind) : NULL;
  int dims = from ? PyArray_NDIM(from) - 2 : 0;
  if (!from || !is_divisor(args[3], args[4]) || !read_dims(args[2], dims, 1, 1, back ? p->size : p->places)) return DECLINED;
  if (!read_windows(p, args[1], dims)) return DECLINED;
  int met = meet_windows(&job);
  if (met < 1) return not_met(met);
  if (!count_elements(&job, args[3], args[4])) return free_job(&job), PyErr_NoMemory();
  return finished(&job, new_planes(from, back ? p->size : p->places, kind), work_of(&job));
}

static PyObject *means_in_windows(PyObject *const *args, Py_ssize_t count) { return means_or_shares(args, count, 0); }
static PyObject *shared_in_windows(PyObject *const *args, Py_ssize_t count) { return means_or_shares(args, count, 1); }

/* --- bins ------------------------------------------------------------------------------------------------------------ */

/* Where bins begin and end: 1; 0 where there are too many, which is left to NumPy; -1: no memory. */
static int lay_bins(struct pooling_job *job) {
  struct bins *b = &job->bins;
  b->plane = product_of(b->size), b->area = product_of(b->places), job->scratch = b->size[2];
  if (!are_small(b->size) || !are_small(b->places) || b->plane > MOST_COPIED || b->area > MOST_COPIED) return 0;
  long *limits = job->steps = malloc((size_t)(2 * (b->places[0] + b->places[1] + b->places[2])) * sizeof *limits);
  if (!limits) return -1;
  for (int dim = 0; dim < POOLED_DIMS; dim++) {
    long count = b->places[dim], size = b->size[dim];
    b->start[dim] = limits, b->stop[dim] = limits + count;
    for (long i = 0; i < count; i++) limits[i] = i * size / count, limits[count + i] = ((i + 1) * size + count - 1) / count;
    limits += 2 * count;
  }
  return 1;
}

/* f(input, places) or f(grad, sizes) */
static PyArrayObject *read_bins(struct pooling_job *job, PyObject *const *args, Py_ssize_t count, int back, int *kind) {
  long *own = back ? job->bins.places : job->bins.size, *other = back ? job->bins.size : job->bins.places;
  PyArrayObject *from = count == 2 ? planes_of(job, args[0], own, kind) : NULL;
  if (!from || !read_dims(args[1], PyArray_NDIM(from) - 2, 1, 1, other) || product_of(own) < 1) return NULL;
  int laid = lay_bins(job);
  if (laid < 0) PyErr_NoMemory();
  return laid > 0 ? from : NULL;
}

static PyObject *largest_in_bins(PyObject *const *args, Py_ssize_t count) {
  struct pooling_job job = {.run = run_bins_largest};
  int kind;
  PyArrayObject *input = read_bins(&job, args, count, 0, &kind);
  if (!input) return DECLINED;
  return with_indices(&job, input, job.bins.places, kind, job.planes * job.bins.plane);
}

static PyObject *means_in_bins(PyObject *const *args, Py_ssize_t count) {
  struct pooling_job job = {.run = run_bins_means};
  int kind;
  PyArrayObject *input = read_bins(&job, args, count, 0, &kind);
  if (!input) return DECLINED;
  return finished(&job, new_planes(input, job.bins.places, kind), job.planes * job.bins.plane);
}

static PyObject *shared_in_bins(PyObject *const *args, Py_ssize_t count) {
  struct pooling_job job = {.run = run_bins_shared};
  int kind;
  PyArrayObject *grad = read_bins(&job, args, count, 1, &kind);
  if (!grad) return DECLINED;
  return finished(&job, new_planes(grad, job.bins.size, kind), job.planes * job.bins.plane);
}

/* --- places ---------------------------------------------------------------------------------------------------------- */

/* One after the other: places may repeat. */
static int place_numbers(PyArrayObject *values, PyArrayObject *places, PyArrayObject *found) {
  const struct table *kernels = table_of(PyArray_TYPE(values));
  int good;
  Py_BEGIN_ALLOW_THREADS;
  good = kernels->numbers_placed(PyArray_DATA(values), PyArray_DATA(places), PyArray_DATA(found), PyArray_SIZE(values),
                                 PyArray_SIZE(found));
  Py_END_ALLOW_THREADS;
  return good;
}

/* added_at(values, places, shape): zeros with numbers added at flat places */
static PyObject *added_at(PyObject *const *args, Py_ssize_t count) {
  int kind;
  PyArrayObject *values = count == 3 ? plain(args[0], &kind) : NULL;
  if (!values || !PyArray_CheckExact(args[1]) || !PyTuple_CheckExact(args[2])) return DECLINED;
  PyArrayObject *places = (PyArrayObject *)args[1];
  if (PyArray_TYPE(places) != NPY_INT64 || !PyArray_ISCARRAY_RO(places) || !same_shape(values, places)) return DECLINED;
  Py_ssize_t dims = PyTuple_GET_SIZE(args[2]);
  npy_intp shape[NPY_MAXDIMS];
  if (dims > NPY_MAXDIMS) return DECLINED;
  for (Py_ssize_t dim = 0; dim < dims; dim++) {
    PyObject *one = PyTuple_GET_ITEM(args[2], dim);
    shape[dim] = PyLong_CheckExact(one) ? PyLong_AsLong(one) : -1;
    if (PyErr_Occurred()) PyErr_Clear();
    if (shape[dim] < 0) return DECLINED;
  }
  PyArrayObject *found = (PyArrayObject *)PyArray_ZEROS((int)dims, shape, kind, 0);
  if (!found) return NULL;
  if (place_numbers(values, places, found)) return (PyObject *)found;
  Py_DECREF(found);
  return DECLINED;
}

const struct binding pooling_bindings[] = {{"largest_in_windows", largest_in_windows}, {"means_in_windows", means_in_windows},
                                     {"shared_in_windows", shared_in_windows}, {"largest_in_bins", largest_in_bins},
                                     {"means_in_bins", means_in_bins}, {"shared_in_bins", shared_in_bins},
                                     {"added_at", added_at}, {NULL, NULL}};
