/* The Python bindings of slices.c.

   Reads an index once, into runs of its own, and checks each number; frees them before it returns. NOTE [Bindings]. */
#include "bindings.h"

typedef void (*scan_kernel)(const void *x, void *out, long size, long inner, int reverse, long begin, long end);
struct slices_job {
  const struct table *kernels;
  struct slicing slicing;
  scan_kernel scan;
  const void *from;
  void *to;
  int64_t *places;
  int reverse, largest;
};

static void take_slices(void *given, long begin, long end) {
  struct slices_job *j = given;
  j->kernels->slices_taken(&j->slicing, j->from, j->to, begin, end);
}
static void add_slices(void *given, long begin, long end) {
  struct slices_job *j = given;
  j->kernels->slices_added(&j->slicing, j->from, j->to, begin, end);
}
static void scan_slices(void *given, long begin, long end) {
  struct slices_job *j = given;
  j->scan(j->from, j->to, j->slicing.size, j->slicing.inner, j->reverse, begin, end);
}

/* A whole number of `least` or more, or -1. */
static long whole(PyObject *object, long least) {
  long value = PyLong_CheckExact(object) ? PyLong_AsLong(object) : -1;
  if (PyErr_Occurred()) PyErr_Clear();
  return value < least ? -1 : value;
}

/* See an array as (outer, size, inner) around a dim; the outer sizes multiplied, or -1. */
static long around(PyArrayObject *array, long dim, long *size, long *inner) {
  if (dim < 0 || dim >= PyArray_NDIM(array)) return -1;
  long outer = 1;
  *size = PyArray_DIM(array, (int)dim), *inner = 1;
  for (int i = 0; i < dim; i++) outer *= PyArray_DIM(array, i);
  for (int i = (int)dim + 1; i < PyArray_NDIM(array); i++) *inner *= PyArray_DIM(array, i);
  return outer;
}

/* Read an index whose numbers all lie below `size` as runs, which the caller frees: see NOTE [Arrays that change]. */
static int read_index(struct slicing *s, PyObject *object, long size) {
  if (!PyArray_CheckExact(object)) return 0;
  PyArrayObject *index = (PyArrayObject *)object;
  if (PyArray_NDIM(index) != 1 || PyArray_TYPE(index) != NPY_INT64 || !PyArray_ISCARRAY_RO(index)) return 0;
  const npy_int64 *from = PyArray_DATA(index);
  s->count = PyArray_DIM(index, 0);
  struct run_of_slices *run = malloc(((size_t)s->count + 1) * sizeof *run), *next = run;
  if (!run) return 0;
  for (long i = 0, before = -2; i < s->count; i++) {
    const int64_t at = read_once(from + i);
    if (at < 0 || at >= size) return free(run), 0;
    if (at == before + 1) next[-1].length++; /* never the first: there is no index -1 */
    else *next++ = (struct run_of_slices){(long)at, 1};
    before = (long)at;
  }
  s->run = run, s->runs = next - run;
  return 1;
}

/* slices_taken(input, index, dim) */
static PyObject *slices_taken(PyObject *const *args, Py_ssize_t count) {
  int kind;
  struct slices_job job;
  struct slicing *s = &job.slicing;
  PyArrayObject *input = count == 3 ? plain(args[0], &kind) : NULL;
  long dim = input ? whole(args[2], 0) : -1, outer = input ? around(input, dim, &s->size, &s->inner) : -1;
  if (outer < 0 || !read_index(s, args[1], s->size)) return DECLINED;
  npy_intp shape[NPY_MAXDIMS];
  memcpy(shape, PyArray_DIMS(input), (size_t)PyArray_NDIM(input) * sizeof *shape);
  shape[dim] = s->count;
  PyArrayObject *found = (PyArrayObject *)PyArray_EMPTY(PyArray_NDIM(input), shape, kind, 0);
  if (found) {
    job.kernels = table_of(kind), job.from = PyArray_DATA(input), job.to = PyArray_DATA(found);
    run_parts(take_slices, &job, outer, 1 + 4 * SMALL / (s->count * s->inner + 1), PyArray_SIZE(found));
  }
  free((void *)s->run);
  return (PyObject *)found;
}

/* add_slices(out, values, index, dim): in place */
static PyObject *add_slices_at(PyObject *const *args, Py_ssize_t count) {
  int kind;
  struct slices_job job;
  struct slicing *s = &job.slicing;
  PyArrayObject *out = count == 4 ? plain(args[0], &kind) : NULL, *values = out ? plain_of(args[1], kind) : NULL;
  if (!values || !PyArray_ISWRITEABLE(out) || PyArray_NDIM(out) != PyArray_NDIM(values)) return DECLINED;
  long dim = whole(args[3], 0), own, outer = around(values, dim, &own, &s->inner);
  if (outer < 0 || around(out, dim, &s->size, &s->inner) != outer) return DECLINED;
  for (int i = 0; i < PyArray_NDIM(out); i++)
    if (i != dim && PyArray_DIM(values, i) != PyArray_DIM(out, i)) return DECLINED;
  if (!read_index(s, args[2], s->size)) return DECLINED;
  if (s->count != own) return free((void *)s->run), DECLINED;
  job.kernels = table_of(kind), job.from = PyArray_DATA(values), job.to = PyArray_DATA(out);
  run_parts(add_slices, &job, outer, 1 + 4 * SMALL / (s->count * s->inner + 1), PyArray_SIZE(values));
  free((void *)s->run);
  Py_RETURN_NONE;
}

/* running_sum(x, dim, reverse), running_product(x, dim, reverse) */
static PyObject *scanned(PyObject *const *args, Py_ssize_t count, int products) {
  int kind;
  struct slices_job job;
  PyArrayObject *x = count == 3 && PyBool_Check(args[2]) ? plain(args[0], &kind) : NULL;
  long outer = x ? around(x, whole(args[1], 0), &job.slicing.size, &job.slicing.inner) : -1;
  if (outer < 0) return DECLINED;
  PyArrayObject *found = empty_like(x);
  if (!found || !PyArray_SIZE(found)) return (PyObject *)found;
  job.kernels = table_of(kind), job.from = PyArray_DATA(x), job.to = PyArray_DATA(found), job.reverse = args[2] == Py_True;
  job.scan = products ? job.kernels->running_products : job.kernels->running_sums;
  run_parts(scan_slices, &job, outer, 1 + 4 * SMALL / (job.slicing.size * job.slicing.inner), PyArray_SIZE(x));
  return (PyObject *)found;
}

static PyObject *running_sum(PyObject *const *args, Py_ssize_t count) { return scanned(args, count, 0); }
static PyObject *running_product(PyObject *const *args, Py_ssize_t count) { return scanned(args, count, 1); }

static void turn_slices(void *given, long begin, long end) {
  struct slices_job *j = given;
  j->kernels->slices_turned(j->from, j->to, j->slicing.size, j->slicing.inner, begin, end);
}

/* slices_turned(x, dim) */
static PyObject *slices_turned(PyObject *const *args, Py_ssize_t count) {
  int kind;
  struct slices_job job;
  PyArrayObject *x = count == 2 ? plain(args[0], &kind) : NULL;
  long outer = x ? around(x, whole(args[1], 0), &job.slicing.size, &job.slicing.inner) : -1;
  if (outer < 0) return DECLINED;
  PyArrayObject *found = empty_like(x);
  if (!found || !PyArray_SIZE(found)) return (PyObject *)found;
  job.kernels = table_of(kind), job.from = PyArray_DATA(x), job.to = PyArray_DATA(found);
  run_parts(turn_slices, &job, outer, 1 + 4 * SMALL / (job.slicing.size * job.slicing.inner), PyArray_SIZE(x));
  return (PyObject *)found;
}

static void keep_triangles(void *given, long begin, long end) {
  struct slices_job *j = given;
  j->kernels->triangles_kept(j->from, j->to, j->slicing.size, j->slicing.inner, j->slicing.count, j->reverse, begin, end);
}

/* triangle_kept(x, offset, upper) */
static PyObject *triangle_kept(PyObject *const *args, Py_ssize_t count) {
  int kind;
  struct slices_job job;
  PyArrayObject *x = count == 3 && PyBool_Check(args[2]) ? plain(args[0], &kind) : NULL;
  long lines = x ? around(x, PyArray_NDIM(x) - 2, &job.slicing.size, &job.slicing.inner) : -1;
  if (lines < 0 || !PyLong_CheckExact(args[1])) return DECLINED;
  job.slicing.count = PyLong_AsLong(args[1]), job.reverse = args[2] == Py_True;
  if (PyErr_Occurred() || job.slicing.count > INT32_MAX || job.slicing.count < -INT32_MAX) return PyErr_Clear(), DECLINED;
  PyArrayObject *found = empty_like(x);
  if (!found || !PyArray_SIZE(found)) return (PyObject *)found;
  job.kernels = table_of(kind), job.from = PyArray_DATA(x), job.to = PyArray_DATA(found);
  run_parts(keep_triangles, &job, lines * job.slicing.size, 1 + 4 * SMALL / job.slicing.inner, PyArray_SIZE(x));
  return (PyObject *)found;
}

static void find_extremes(void *given, long begin, long end) {
  struct slices_job *j = given;
  j->kernels->running_extremes(j->from, j->to, j->places, j->slicing.size, j->slicing.inner, j->largest, begin, end);
}

/* running_extreme(x, dim, largest): (values, places) */
static PyObject *running_extreme(PyObject *const *args, Py_ssize_t count) {
  int kind;
  struct slices_job job;
  PyArrayObject *x = count == 3 && PyBool_Check(args[2]) ? plain(args[0], &kind) : NULL;
  long outer = x ? around(x, whole(args[1], 0), &job.slicing.size, &job.slicing.inner) : -1;
  if (outer < 0 || !PyArray_SIZE(x)) return DECLINED;
  PyArrayObject *places = (PyArrayObject *)PyArray_EMPTY(PyArray_NDIM(x), PyArray_DIMS(x), NPY_INT64, 0);
  PyArrayObject *found = places ? empty_like(x) : NULL;
  if (!found) return Py_XDECREF(places), NULL;
  job.kernels = table_of(kind), job.from = PyArray_DATA(x), job.to = PyArray_DATA(found);
  job.places = PyArray_DATA(places), job.largest = args[2] == Py_True;
  run_parts(find_extremes, &job, outer, 1 + 4 * SMALL / (job.slicing.size * job.slicing.inner), PyArray_SIZE(x));
  return Py_BuildValue("NN", found, places);
}

const struct binding slice_bindings[] = {{"slices_taken", slices_taken}, {"add_slices", add_slices_at},
                                   {"running_sum", running_sum}, {"running_product", running_product},
                                   {"slices_turned", slices_turned}, {"triangle_kept", triangle_kept},
                                   {"running_extreme", running_extreme}, {NULL, NULL}};
