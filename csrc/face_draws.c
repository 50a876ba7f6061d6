/* The Python face of draws.c. The state is an array of 625 uint32, which is moved on in place while the interpreter's
   lock is held: two threads never draw from one state at once. */
#include "face.h"

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

const struct face draw_faces[] = {{"random_words", random_words},
                                  {"random_units", random_units},
                                  {"random_choices", random_choices},
                                  {"random_noise", random_noise},
                                  {NULL, NULL}};
