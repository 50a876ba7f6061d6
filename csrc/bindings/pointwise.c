/* The Python bindings of pointwise.c and special.c: one array, or a gradient and an array of its shape, and the
   function's numbers.

   NumPy scalars and 0-d arrays are taken too and give NumPy scalars, as from NumPy's own functions. A gradient may be
   one number stretched to a shape, as the gradient of a sum is.

   Checks the shapes and how many numbers there are. NOTE [Bindings]. */
#include "bindings.h"
#include <stddef.h>

#include <numpy/arrayscalars.h>

#define BLOCK 1024 /* numbers; threads share work in blocks */
#define OPTIONS 4  /* the most numbers that a function has */

typedef void(*curve_kernel) OF_CURVE;
typedef void(*slope_kernel) OF_SLOPE;

/* One function: where its kernels stand in the table, how many numbers it takes, how much work a thread must get. */
struct pointwise {
  size_t place;
  int numbers;
  long grain; /* blocks */
};
#define DEAR 8   /* exponentials and the like */
#define CHEAP 32 /* bound by memory */

struct map_job {
  const struct pointwise *function;
  const struct table *kernels;
  char *grad, *x, *out;
  int stretched;    /* grad is one block, for each block of x */
  long size, width; /* numbers in all; bytes of one */
  int streams;      /* the result is too large for the caches */
  double options[OPTIONS];
};

static void map_part(void *job, long begin, long end) {
  struct map_job *j = job;
  long first = begin * BLOCK, last = end * BLOCK < j->size ? end * BLOCK : j->size, at = first * j->width;
  const char *kernel = (const char *)j->kernels + j->function->place;
  if (!j->grad)
    (*(const curve_kernel *)kernel)(j->x + at, j->out + at, last - first, j->options, j->streams);
  else if (!j->stretched)
    (*(const slope_kernel *)kernel)(j->grad + at, j->x + at, j->out + at, last - first, j->options, j->streams);
  else
    for (; first < last; first += BLOCK, at += BLOCK * j->width)
      (*(const slope_kernel *)kernel)(j->grad, j->x + at, j->out + at, last - first < BLOCK ? last - first : BLOCK,
                                      j->options, j->streams);
}

/* Whether these are as many Python numbers as the function takes. */
static int read_options(struct map_job *job, PyObject *const *args, Py_ssize_t count) {
  if (count != job->function->numbers) return 0;
  for (Py_ssize_t i = 0; i < count; i++) {
    if (PyFloat_Check(args[i]))
      job->options[i] = PyFloat_AS_DOUBLE(args[i]);
    else if (PyLong_CheckExact(args[i])) {
      job->options[i] = PyLong_AsDouble(args[i]);
      if (job->options[i] == -1 && PyErr_Occurred()) return PyErr_Clear(), 0;
    } else
      return 0;
  }
  return 1;
}

/* A float32 or float64, as NumPy scalar or 0-d array: where it stands, or NULL. */
static char *scalar_of(PyObject *object, int *kind) {
  if (PyArray_IsScalar(object, Float)) return *kind = NPY_FLOAT, (char *)&PyArrayScalar_VAL(object, Float);
  if (PyArray_IsScalar(object, Double)) return *kind = NPY_DOUBLE, (char *)&PyArrayScalar_VAL(object, Double);
  PyArrayObject *array = plain(object, kind);
  return array && !PyArray_NDIM(array) ? PyArray_DATA(array) : NULL;
}

/* Whether this is one number stretched to the shape of x. */
static int is_stretched(PyObject *object, PyArrayObject *x) {
  if (!PyArray_CheckExact(object)) return 0;
  PyArrayObject *array = (PyArrayObject *)object;
  if (PyArray_TYPE(array) != PyArray_TYPE(x) || !PyArray_ISBEHAVED_RO(array) || !same_shape(array, x)) return 0;
  for (int dim = 0; dim < PyArray_NDIM(array); dim++)
    if (PyArray_STRIDE(array, dim) && PyArray_DIM(array, dim) != 1) return 0;
  return 1;
}

static void fill_block(char *block, const char *number, long width) {
  for (long i = 0; i < BLOCK; i++) memcpy(block + i * width, number, (size_t)width);
}

/* The same for one number: `grad` or NULL, and x. */
static PyObject *of_scalars(struct map_job *job, PyObject *grad, PyObject *x) {
  int kind, other;
  job->x = scalar_of(x, &kind);
  if (!job->x) return DECLINED;
  if (grad && (!(job->grad = scalar_of(grad, &other)) || other != kind)) return DECLINED;
  double room;
  job->out = (char *)&room;
  job->kernels = table_of(kind), job->size = 1, job->width = sizeof room;
  map_part(job, 0, 1);
  PyObject *found = kind == NPY_FLOAT ? PyArrayScalar_New(Float) : PyArrayScalar_New(Double);
  if (!found) return NULL;
  if (kind == NPY_FLOAT)
    memcpy(&PyArrayScalar_VAL(found, Float), &room, sizeof(npy_float));
  else
    memcpy(&PyArrayScalar_VAL(found, Double), &room, sizeof(npy_double));
  return found;
}

/* f(x, numbers...), or f(grad, x, numbers...) where the function is a gradient */
static PyObject *mapped(const struct pointwise *function, int gradient, PyObject *const *args, Py_ssize_t count) {
  struct map_job job = {.function = function};
  if (count < 1 + gradient || !read_options(&job, args + 1 + gradient, count - 1 - gradient)) return DECLINED;
  int kind;
  PyArrayObject *x = plain(args[gradient], &kind), *grad = NULL;
  if (!x || !PyArray_NDIM(x)) return of_scalars(&job, gradient ? args[0] : NULL, args[gradient]);
  double block[BLOCK];
  job.kernels = table_of(kind), job.size = PyArray_SIZE(x), job.width = PyArray_ITEMSIZE(x), job.x = PyArray_DATA(x);
  if (gradient && (grad = plain_of(args[0], kind)) && same_shape(grad, x))
    job.grad = PyArray_DATA(grad);
  else if (gradient && job.size && is_stretched(args[0], x)) {
    fill_block((char *)block, PyArray_DATA((PyArrayObject *)args[0]), job.width);
    job.grad = (char *)block, job.stretched = 1;
  } else if (gradient)
    return DECLINED;
  PyArrayObject *out = empty_like(x);
  if (!out) return NULL;
  job.out = PyArray_DATA(out);
  job.streams = job.size * job.width > STREAMED;
  run_parts(map_part, &job, (job.size + BLOCK - 1) / BLOCK, function->grain, job.size);
  return (PyObject *)out;
}

#define FACE(name, gradient, numbers, grain) \
  static PyObject *name##_binding(PyObject *const *args, Py_ssize_t count) { \
    static const struct pointwise function = {offsetof(struct table, name), numbers, grain}; \
    return mapped(&function, gradient, args, count); \
  }
#define CURVE(name, numbers, grain) FACE(name, 0, numbers, grain)
#define SLOPE(name, numbers, grain) FACE(name##_gradient, 1, numbers, grain)

CURVE(exp, 0, DEAR)
CURVE(expm1, 0, DEAR)
CURVE(log, 0, DEAR)
CURVE(log1p, 0, DEAR)
CURVE(tanh, 0, DEAR)
SLOPE(tanh, 0, CHEAP)
CURVE(sigmoid, 0, DEAR)
SLOPE(sigmoid, 0, CHEAP)
CURVE(logsigmoid, 0, DEAR)
SLOPE(logsigmoid, 0, DEAR)
CURVE(softplus, 2, DEAR)
SLOPE(softplus, 2, DEAR)
CURVE(erf, 0, DEAR)
SLOPE(erf, 0, DEAR)
CURVE(relu, 0, CHEAP)
SLOPE(relu, 0, CHEAP)
CURVE(leaky_relu, 1, CHEAP)
SLOPE(leaky_relu, 1, CHEAP)
CURVE(hardtanh, 2, CHEAP)
SLOPE(hardtanh, 2, CHEAP)
CURVE(hardsigmoid, 0, CHEAP)
SLOPE(hardsigmoid, 0, CHEAP)
CURVE(hardswish, 0, CHEAP)
SLOPE(hardswish, 0, CHEAP)
CURVE(softshrink, 1, CHEAP)
CURVE(hardshrink, 1, CHEAP)
SLOPE(shrink, 1, CHEAP)
CURVE(elu, 3, DEAR)
SLOPE(elu, 3, DEAR)
CURVE(gelu, 0, DEAR)
SLOPE(gelu, 0, DEAR)
CURVE(gelu_tanh, 0, DEAR)
SLOPE(gelu_tanh, 0, DEAR)
CURVE(silu, 0, DEAR)
SLOPE(silu, 0, DEAR)
CURVE(erfc, 0, DEAR)
CURVE(erfinv, 0, DEAR)
CURVE(lgamma, 0, DEAR)
CURVE(digamma, 0, DEAR)

#define LISTED(name) {#name, name##_binding}
const struct binding pointwise_bindings[] = {
    LISTED(exp), LISTED(expm1), LISTED(log), LISTED(log1p), LISTED(tanh), LISTED(tanh_gradient), LISTED(sigmoid),
    LISTED(sigmoid_gradient), LISTED(logsigmoid), LISTED(logsigmoid_gradient), LISTED(softplus),
    LISTED(softplus_gradient), LISTED(erf), LISTED(erf_gradient), LISTED(relu), LISTED(relu_gradient),
    LISTED(leaky_relu), LISTED(leaky_relu_gradient), LISTED(elu), LISTED(elu_gradient), LISTED(gelu),
    LISTED(gelu_gradient), LISTED(gelu_tanh), LISTED(gelu_tanh_gradient), LISTED(silu), LISTED(silu_gradient),
    LISTED(hardtanh), LISTED(hardtanh_gradient), LISTED(hardsigmoid), LISTED(hardsigmoid_gradient), LISTED(hardswish),
    LISTED(hardswish_gradient), LISTED(softshrink), LISTED(hardshrink), LISTED(shrink_gradient), LISTED(erfc), LISTED(erfinv), LISTED(lgamma), LISTED(digamma),
    {NULL, NULL}};
