/* The Python bindings of optimizer_steps.c. A step takes its arrays (None for state that it does not keep), then its options,
   writes in place and returns None.

   Reads options, which may run Python code, before arrays; checks that these are writable, of one shape, and the same
   or apart. NOTE [Bindings]. */
#include <stddef.h>
#include <stdlib.h>

#include "bindings.h"

#define PART 4096 /* numbers: no array is split finer, and a part begins at a whole vector */
#define GRAIN 4   /* parts that one thread takes at once */

typedef void (*step_function)(void *const *arrays, const double *options, long begin, long end);

struct step_job {
  step_function run;
  void *arrays[STEP_ARRAYS];
  double options[STEP_OPTIONS];
  long size;
};

static void step_part(void *job, long begin, long end) {
  struct step_job *j = job;
  end *= PART;
  j->run(j->arrays, j->options, begin * PART, end < j->size ? end : j->size);
}

/* Whether two arrays share some of their memory, and not all: what one writes, the other would read too late. */
static int overlap(PyArrayObject *a, PyArrayObject *b) {
  char *first = PyArray_BYTES(a), *second = PyArray_BYTES(b);
  return first != second && first < second + PyArray_NBYTES(b) && second < first + PyArray_NBYTES(a);
}

/* Take the arrays: the first says type and size, and all but the gradient are written. From `required` on may be None. */
static int take_arrays(PyObject *const *args, int arrays, int required, struct step_job *job, int *kind) {
  PyArrayObject *values = plain(args[0], kind);
  if (!values || !PyArray_ISWRITEABLE(values)) return 0;
  job->size = PyArray_SIZE(values);
  job->arrays[0] = PyArray_DATA(values);
  for (int i = 1; i < arrays; i++) {
    if (i >= required && args[i] == Py_None) continue;
    PyArrayObject *array = plain_of(args[i], *kind);
    if (!array || !same_shape(values, array) || overlap(values, array)) return 0;
    if (i > 1 && !PyArray_ISWRITEABLE(array)) return 0;
    job->arrays[i] = PyArray_DATA(array);
  }
  return 1;
}

static int take_options(PyObject *const *args, int options, struct step_job *job) {
  for (int i = 0; i < options; i++) {
    if (!PyFloat_Check(args[i]) && !PyLong_Check(args[i])) return 0;
    job->options[i] = PyFloat_AsDouble(args[i]);
    if (job->options[i] == -1 && PyErr_Occurred()) {
      PyErr_Clear();
      return 0;
    }
  }
  return 1;
}

static PyObject *take_step(PyObject *const *args, Py_ssize_t count, int arrays, int required, int options, size_t kernel) {
  struct step_job job = {0};
  int kind;
  if (count != arrays + options || !take_options(args + arrays, options, &job)) return DECLINED; /* may run Python code */
  if (!take_arrays(args, arrays, required, &job, &kind)) return DECLINED;
  job.run = *(const step_function *)((const char *)table_of(kind) + kernel);
  run_parts(step_part, &job, (job.size + PART - 1) / PART, GRAIN, job.size);
  Py_RETURN_NONE;
}

#define FACE(name, arrays, required, options)                                           \
  static PyObject *name(PyObject *const *args, Py_ssize_t count) {                      \
    return take_step(args, count, arrays, required, options, offsetof(struct table, name)); \
  }
FACE(sgd_step, 3, 2, 6)
FACE(adam_step, 5, 4, 8)
FACE(nadam_step, 4, 4, 9)
FACE(radam_step, 4, 4, 8)
FACE(adamax_step, 4, 4, 6)
FACE(adagrad_step, 3, 3, 4)
FACE(rmsprop_step, 5, 3, 6)
FACE(adadelta_step, 4, 4, 5)
FACE(asgd_step, 3, 3, 5)
FACE(rprop_step, 4, 4, 5)
FACE(scale_in_place, 1, 1, 1)

struct squares_job {
  const struct table *kernels;
  char *x;
  double *sums;
  long size, width;
};

static void squares_part(void *job, long begin, long end) {
  struct squares_job *j = job;
  for (; begin < end; begin++) {
    long at = begin * PART, rest = j->size - at;
    j->sums[begin] = j->kernels->sum_of_squares(j->x + at * j->width, rest < PART ? rest : PART);
  }
}

/* sum_of_squares(x): each part's sum has its place, so that threads change nothing. */
static PyObject *sum_of_squares(PyObject *const *args, Py_ssize_t count) {
  int kind;
  PyArrayObject *x = count == 1 ? plain(args[0], &kind) : NULL;
  if (!x) return DECLINED;
  long size = PyArray_SIZE(x), parts = (size + PART - 1) / PART;
  double few[16], *sums = parts <= 16 ? few : malloc((size_t)parts * sizeof *sums), total = 0;
  if (!sums) return PyErr_NoMemory();
  struct squares_job job = {table_of(kind), PyArray_DATA(x), sums, size, PyArray_ITEMSIZE(x)};
  run_parts(squares_part, &job, parts, GRAIN, size);
  for (long i = 0; i < parts; i++) total += sums[i];
  if (sums != few) free(sums);
  return PyFloat_FromDouble(total);
}

const struct binding step_bindings[] = {{"sgd_step", sgd_step},         {"adam_step", adam_step},
                                  {"nadam_step", nadam_step},     {"radam_step", radam_step},
                                  {"adamax_step", adamax_step},   {"adagrad_step", adagrad_step},
                                  {"rmsprop_step", rmsprop_step}, {"adadelta_step", adadelta_step},
                                  {"asgd_step", asgd_step},       {"rprop_step", rprop_step},
                                  {"scale_in_place", scale_in_place}, {"sum_of_squares", sum_of_squares},
                                  {NULL, NULL}};
