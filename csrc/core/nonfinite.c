/* Whether an array of any layout holds NaN or infinity: what anomaly mode asks of every array (dispatch/anomaly_mode.py).

   Called by the core and by bindings/summaries.c, with the GIL, which large arrays release. Takes any object, and finds
   nothing in what is no floating-point array. Raises nothing. */
#include "core.h"
#include <numpy/arrayscalars.h>
#include <stdlib.h>

#define PART 32768   /* numbers of a part; more than two are shared among threads */
#define GATHERED 256 /* numbers that lie apart are brought together by so many */

/* Numbers of 16 bits: `exponent` has the bits of it set. */
static int nonfinite_halves(const uint16_t *x, long count, unsigned exponent) {
  unsigned most = 0;
  for (long i = 0; i < count; i++) {
    unsigned size = x[i] & 0x7fffu;
    most = size > most ? size : most;
  }
  return most > exponent ? FOUND_NAN : most == exponent ? FOUND_INF : 0;
}

static int nonfinite_run(int kind, const void *at, long count) {
  if (kind == NPY_HALF) return nonfinite_halves(at, count, 0x7c00);
  if (kind >= NPY_USERDEF) return nonfinite_halves(at, count, 0x7f80); /* bfloat16 */
  return table_of(kind)->nonfinite_among(at, count);
}

struct nonfinite_job {
  int kind, found;
  long size;
  const char *at;
};

static void nonfinite_part(void *job, long begin, long end) {
  struct nonfinite_job *j = job;
  int found = nonfinite_run(j->kind, j->at + begin * j->size, end - begin);
  if (found) __atomic_fetch_or(&j->found, found, __ATOMIC_RELAXED);
}

/* Dims of a layout in which nothing is repeated, the largest stride first; dims that continue each other are one. */
struct layout {
  int kind, dims;
  long size, count[NPY_MAXDIMS], stride[NPY_MAXDIMS];
};

/* The layout of an array, and where its first number in memory is; NULL if it is empty. */
static const char *layout_of(PyArrayObject *array, struct layout *of) {
  const char *at = PyArray_DATA(array);
  for (int d = 0; d < PyArray_NDIM(array); d++) {
    long count = PyArray_DIM(array, d), stride = PyArray_STRIDE(array, d);
    if (!count) return NULL;
    if (count == 1 || !stride) continue;
    if (stride < 0) at += (count - 1) * stride, stride = -stride;
    int to = of->dims++;
    for (; to && of->stride[to - 1] < stride; to--) {
      of->stride[to] = of->stride[to - 1];
      of->count[to] = of->count[to - 1];
    }
    of->stride[to] = stride;
    of->count[to] = count;
  }
  int last = 0;
  for (int d = 1; d < of->dims; d++) {
    if (of->stride[last] == of->stride[d] * of->count[d]) {
      of->count[last] *= of->count[d];
    } else {
      of->count[++last] = of->count[d];
    }
    of->stride[last] = of->stride[d];
  }
  if (of->dims) of->dims = last + 1;
  return at;
}

static int nonfinite_strided(int kind, long size, const char *at, long count, long stride) {
  double gathered[GATHERED];
  int found = 0;
  for (long i = 0; i < count && !(found & FOUND_NAN); i += GATHERED) {
    long some = count - i < GATHERED ? count - i : GATHERED;
    for (long k = 0; k < some; k++) memcpy((char *)gathered + k * size, at + (i + k) * stride, size);
    found |= nonfinite_run(kind, gathered, some);
  }
  return found;
}

static int nonfinite_dims(const struct layout *of, int dim, const char *at) {
  if (dim == of->dims) return nonfinite_run(of->kind, at, 1);
  if (dim == of->dims - 1) {
    if (of->stride[dim] == of->size) return nonfinite_run(of->kind, at, of->count[dim]);
    return nonfinite_strided(of->kind, of->size, at, of->count[dim], of->stride[dim]);
  }
  int found = 0;
  for (long i = 0; i < of->count[dim] && !(found & FOUND_NAN); i++) found |= nonfinite_dims(of, dim + 1, at + i * of->stride[dim]);
  return found;
}

static int nonfinite_array(PyArrayObject *array) {
  const int kind = PyArray_TYPE(array);
  struct layout of = {.kind = kind, .size = PyArray_ITEMSIZE(array)};
  if (kind != NPY_FLOAT && kind != NPY_DOUBLE && kind != NPY_HALF && !(kind >= NPY_USERDEF && of.size == 2)) return 0;
  if (!PyArray_ISALIGNED(array) || !PyArray_ISNOTSWAPPED(array)) return 0;
  if (PyArray_IS_C_CONTIGUOUS(array)) {
    const long count = PyArray_SIZE(array);
    if (count <= 2 * PART) return count ? nonfinite_run(kind, PyArray_DATA(array), count) : 0;
  }
  const char *at = layout_of(array, &of);
  if (!at) return 0;
  if (of.dims != 1 || of.stride[0] != of.size) return nonfinite_dims(&of, 0, at);
  struct nonfinite_job job = {.kind = kind, .size = of.size, .at = at};
  Py_INCREF(array); /* its tensor may be given other data meanwhile */
  run_parts(nonfinite_part, &job, of.count[0], PART, of.count[0]);
  Py_DECREF(array);
  return job.found;
}

/* The nonfinite_kinds of an array or a NumPy scalar: 0, FOUND_INF, FOUND_NAN or both; what is no floating-point number has none. */
int nonfinite_in(PyObject *data) {
  if (!data) return 0; /* a slot that was deleted */
  PyTypeObject *type = Py_TYPE(data);
  if (type == &PyArray_Type) return nonfinite_array((PyArrayObject *)data);
  if (type == &PyFloatArrType_Type) return nonfinite_run(NPY_FLOAT, scalar_value(data), 1);
  if (type == &PyDoubleArrType_Type) return nonfinite_run(NPY_DOUBLE, scalar_value(data), 1);
  if (!PyArray_CheckScalar(data)) return 0;
  PyObject *array = PyArray_FROM_O(data);
  if (!array) {
    PyErr_Clear();
    return 0;
  }
  int found = nonfinite_array((PyArrayObject *)array);
  Py_DECREF(array);
  return found;
}
