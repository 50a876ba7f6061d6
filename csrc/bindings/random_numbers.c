/* The Python bindings of random_numbers.c, normals.c, counts.c, gammas.c and binomials.c. The state is an array of 625 uint32, which is moved on in
   place and with the GIL: two threads never draw from one state at once.

   Checks the state's size, counts, ranges, rates and probabilities; the place in the state is checked by the kernel.
   NOTE [Bindings]. */
#include "bindings.h"
#include <math.h>

/* The words of a state, or NULL. */
static uint32_t *state_of(PyObject *object) {
  if (!PyArray_CheckExact(object)) return NULL;
  PyArrayObject *array = (PyArrayObject *)object;
  if (PyArray_TYPE(array) != NPY_UINT32 || PyArray_SIZE(array) != TWISTER_WORDS + 1 || !PyArray_ISCARRAY(array)) return NULL;
  return PyArray_DATA(array);
}

/* A count of numbers, or -1. */
static npy_intp count_of(PyObject *object) {
  if (!PyLong_CheckExact(object)) return -1;
  Py_ssize_t count = PyLong_AsSsize_t(object);
  if (count == -1 && PyErr_Occurred()) PyErr_Clear();
  return count;
}

/* A float's type, or -1. */
static int kind_of(PyObject *object) {
  if (!PyArray_DescrCheck(object) || !PyArray_ISNBO(((PyArray_Descr *)object)->byteorder)) return -1;
  int kind = ((PyArray_Descr *)object)->type_num;
  return kind == NPY_FLOAT || kind == NPY_DOUBLE ? kind : -1;
}

/* A probability times 2^53, rounded up: 53 random bits are below it with that probability. Beyond [0, 1]: -1. */
static int64_t limit_of(PyObject *object) {
  if (!PyFloat_Check(object)) return -1;
  double probability = PyFloat_AS_DOUBLE(object);
  if (!(probability >= 0 && probability <= 1)) return -1;
  double bits = probability * 0x1p53;
  int64_t whole = (int64_t)bits;
  return whole + ((double)whole < bits);
}

/* random_words(state, count) */
static PyObject *random_words(PyObject *const *args, Py_ssize_t count) {
  uint32_t *state = count == 2 ? state_of(args[0]) : NULL;
  npy_intp size = state ? count_of(args[1]) : -1;
  if (size < 0) return DECLINED;
  PyObject *found = PyArray_EMPTY(1, &size, NPY_UINT64, 0);
  if (found) kernels_of_float->random_words(state, PyArray_DATA((PyArrayObject *)found), size);
  return found;
}

/* random_units(state, count, kind) */
static PyObject *random_units(PyObject *const *args, Py_ssize_t count) {
  uint32_t *state = count == 3 ? state_of(args[0]) : NULL;
  npy_intp size = state ? count_of(args[1]) : -1;
  int kind = size < 0 ? -1 : kind_of(args[2]);
  if (kind < 0) return DECLINED;
  PyObject *found = PyArray_EMPTY(1, &size, kind, 0);
  if (found) table_of(kind)->random_units(state, PyArray_DATA((PyArrayObject *)found), size);
  return found;
}

/* random_choices(state, count, probability) */
static PyObject *random_choices(PyObject *const *args, Py_ssize_t count) {
  uint32_t *state = count == 3 ? state_of(args[0]) : NULL;
  npy_intp size = state ? count_of(args[1]) : -1;
  int64_t limit = size < 0 ? -1 : limit_of(args[2]);
  if (limit < 0) return DECLINED;
  PyObject *found = PyArray_EMPTY(1, &size, NPY_BOOL, 0);
  if (found) kernels_of_float->random_choices(state, (uint64_t)limit, PyArray_DATA((PyArrayObject *)found), size);
  return found;
}

/* random_noise(state, count, probability, value, kind) */
static PyObject *random_noise(PyObject *const *args, Py_ssize_t count) {
  uint32_t *state = count == 5 ? state_of(args[0]) : NULL;
  npy_intp size = state ? count_of(args[1]) : -1;
  int64_t limit = size < 0 ? -1 : limit_of(args[2]);
  int kind = limit < 0 || !PyFloat_Check(args[3]) ? -1 : kind_of(args[4]);
  if (kind < 0) return DECLINED;
  PyObject *found = PyArray_EMPTY(1, &size, kind, 0);
  double value = PyFloat_AS_DOUBLE(args[3]);
  if (found) table_of(kind)->random_noise(state, (uint64_t)limit, value, PyArray_DATA((PyArrayObject *)found), size);
  return found;
}

/* random_normals(state, count, mean, std, kind), for 16 numbers or more */
static PyObject *random_normals(PyObject *const *args, Py_ssize_t count) {
  uint32_t *state = count == 5 ? state_of(args[0]) : NULL;
  npy_intp size = state ? count_of(args[1]) : -1;
  if (size < 16 || !PyFloat_Check(args[2]) || !PyFloat_Check(args[3])) return DECLINED;
  int kind = kind_of(args[4]);
  if (kind < 0) return DECLINED;
  PyObject *found = PyArray_EMPTY(1, &size, kind, 0);
  double mean = PyFloat_AS_DOUBLE(args[2]), std = PyFloat_AS_DOUBLE(args[3]);
  if (found) table_of(kind)->random_normals(state, mean, std, PyArray_DATA((PyArrayObject *)found), size);
  return found;
}

/* random_integers(state, count, low, high) */
static PyObject *random_integers(PyObject *const *args, Py_ssize_t count) {
  uint32_t *state = count == 4 ? state_of(args[0]) : NULL;
  npy_intp size = state ? count_of(args[1]) : -1;
  if (size < 0 || !PyLong_CheckExact(args[2]) || !PyLong_CheckExact(args[3])) return DECLINED;
  int64_t low = PyLong_AsLongLong(args[2]), high = PyErr_Occurred() ? 0 : PyLong_AsLongLong(args[3]);
  if (PyErr_Occurred()) return PyErr_Clear(), DECLINED;
  if (low >= high) return DECLINED;
  PyObject *found = PyArray_EMPTY(1, &size, NPY_INT64, 0);
  uint64_t length = (uint64_t)high - (uint64_t)low;
  if (found)
    kernels_of_float->random_integers(state, (uint64_t)low, length, PyArray_DATA((PyArrayObject *)found), size);
  return found;
}

/* random_order(state, last) */
static PyObject *random_order(PyObject *const *args, Py_ssize_t count) {
  uint32_t *state = count == 2 ? state_of(args[0]) : NULL;
  npy_intp last = state ? count_of(args[1]) : -1;
  if (last < 0 || last == NPY_MAX_INTP) return DECLINED;
  npy_intp size = last + 1;
  PyObject *found = PyArray_EMPTY(1, &size, NPY_INT64, 0);
  if (found) kernels_of_float->random_order(state, PyArray_DATA((PyArrayObject *)found), last);
  return found;
}

/* random_poisson(state, count, rates): as many counts as rates, which are float64 */
static PyObject *random_poisson(PyObject *const *args, Py_ssize_t count) {
  uint32_t *state = count == 3 ? state_of(args[0]) : NULL;
  npy_intp size = state ? count_of(args[1]) : -1;
  PyArrayObject *rates = size < 0 ? NULL : plain_of(args[2], NPY_DOUBLE);
  if (!rates || PyArray_SIZE(rates) != size) return DECLINED;
  for (npy_intp i = 0; i < size; i++) {
    const double rate = ((const double *)PyArray_DATA(rates))[i];
    if (!(rate >= 0 && rate <= 0x1p62)) return DECLINED; /* drawing would not end */
  }
  PyObject *found = PyArray_EMPTY(1, &size, NPY_INT64, 0);
  if (found) kernels_of_float->random_poisson(state, PyArray_DATA(rates), PyArray_DATA((PyArrayObject *)found), size);
  return found;
}

/* A contiguous float64 array of a size that may be written to where it has to be, or NULL. */
static double *doubles_of(PyObject *object, npy_intp size, int written) {
  PyArrayObject *array = plain_of(object, NPY_DOUBLE);
  return array && PyArray_SIZE(array) == size && (!written || PyArray_ISWRITEABLE(array)) ? PyArray_DATA(array) : NULL;
}

/* random_gammas(state, count, spare, powers, d, c): float64 numbers, as many as powers, d and c have */
static PyObject *random_gammas(PyObject *const *args, Py_ssize_t count) {
  uint32_t *state = count == 6 ? state_of(args[0]) : NULL;
  npy_intp size = state ? count_of(args[1]) : -1;
  if (size < 0) return DECLINED;
  double *spare = doubles_of(args[2], 2, 1), *powers = doubles_of(args[3], size, 0);
  double *d = doubles_of(args[4], size, 0), *c = doubles_of(args[5], size, 0);
  if (!spare || !powers || !d || !c) return DECLINED;
  for (npy_intp i = 0; i < size; i++) /* else drawing might not end; infinite shapes have an infinite d and c = 0 */
    if (d[i] != 0 && !isnan(d[i]) && !isnan(c[i]) && !(isinf(d[i]) && c[i] == 0) && !(fabs(9 * d[i] * c[i] * c[i] - 1) < 1e-6))
      return DECLINED;
  PyObject *found = PyArray_EMPTY(1, &size, NPY_DOUBLE, 0);
  if (found) kernels_of_float->random_gammas(state, spare, powers, d, c, PyArray_DATA((PyArrayObject *)found), size);
  return found;
}

/* random_binomials(state, count, counts, probabilities): float64 numbers, as many as there are counts of trials */
static PyObject *random_binomials(PyObject *const *args, Py_ssize_t count) {
  uint32_t *state = count == 4 ? state_of(args[0]) : NULL;
  npy_intp size = state ? count_of(args[1]) : -1;
  if (size < 0) return DECLINED;
  double *counts = doubles_of(args[2], size, 0), *probabilities = doubles_of(args[3], size, 0);
  if (!counts || !probabilities) return DECLINED;
  for (npy_intp i = 0; i < size; i++)
    if (isnan(counts[i])) return DECLINED; /* drawing would not end */
  PyObject *found = PyArray_EMPTY(1, &size, NPY_DOUBLE, 0);
  if (found) kernels_of_float->random_binomials(state, counts, probabilities, PyArray_DATA((PyArrayObject *)found), size);
  return found;
}

/* by_c_library(name, numbers): a function of C's library of each float64, one after the other */
static PyObject *by_c_library(PyObject *const *args, Py_ssize_t count) {
  static const struct {
    const char *name;
    double (*call)(double);
  } known[] = {{"log", log}, {"log1p", log1p}, {"sin", sin}, {"cos", cos}, {"tan", tan}, {"exp", exp}};
  PyArrayObject *numbers = count == 2 && PyUnicode_Check(args[0]) ? plain_of(args[1], NPY_DOUBLE) : NULL;
  if (!numbers) return DECLINED;
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (!PyUnicode_CompareWithASCIIString(args[0], known[i].name)) {
      PyArrayObject *found = empty_like(numbers);
      const double *from = PyArray_DATA(numbers);
      double *to = found ? PyArray_DATA(found) : NULL;
      for (npy_intp at = 0, size = PyArray_SIZE(numbers); to && at < size; at++) to[at] = known[i].call(from[at]);
      return (PyObject *)found;
    }
  return DECLINED;
}

const struct binding random_bindings[] = {{"random_words", random_words},
                                  {"random_units", random_units},
                                  {"random_choices", random_choices},
                                  {"random_noise", random_noise},
                                  {"random_normals", random_normals},
                                  {"random_integers", random_integers},
                                  {"random_order", random_order},
                                  {"random_poisson", random_poisson},
                                  {"random_gammas", random_gammas},
                                  {"random_binomials", random_binomials},
                                  {"by_c_library", by_c_library},
                                  {NULL, NULL}};
