/* The Python bindings of attention.c: attention over texts laid end to end.

   Checks that the lengths make up the rows, and that the shapes fit the heads. A bias is one number for a token as a key. Rows may lie apart, or backwards. NOTE
   [Bindings]. */
#include "bindings.h"
#include "gemm_driver.h"

struct texts {
  const struct table *kernels;
  const char *qkv, *grad, *bias; /* bias may be NULL */
  char *out, *logs, *found, *g_bias;
  long texts, heads, dim, row, grad_row; /* numbers in a row of qkv, and of grad */
  size_t size;
  double scale;
  const long *starts; /* where each text begins, and where the last one ends */
  int failed;
};

/* Job i is text i % texts and head i / texts, so that long and short texts mix in each part. */
static struct attention job_of(const struct texts *t, long i) {
  const long text = i % t->texts, head = i / t->texts, first = t->starts[text], count = t->starts[text + 1] - first;
  const long third = t->heads * t->dim * (long)t->size, at = (first * t->row + head * t->dim) * (long)t->size;
  const char *q = t->qkv + at;
  struct attention a = {.q = q, .k = q + third, .v = q + 2 * third, .queries = count, .keys = count, .dim = t->dim,
                        .q_row = t->row, .k_row = t->row, .v_row = t->row, .scale = t->scale, .logs_row = t->heads};
  a.logs = t->logs + (first * t->heads + head) * (long)t->size;
  a.bias = t->bias ? t->bias + first * (long)t->size : NULL;
  if (t->out) {
    a.out = t->out + (first * t->heads + head) * t->dim * (long)t->size;
    a.out_row = t->heads * t->dim;
  } else {
    a.grad = t->grad + (first * t->grad_row + head * t->dim) * (long)t->size;
    a.grad_row = t->grad_row;
    char *found = t->found + (first * 3 * t->heads + head) * t->dim * (long)t->size;
    a.g_q = found, a.g_k = found + third, a.g_v = found + 2 * third;
    a.g_q_row = a.g_k_row = a.g_v_row = 3 * t->heads * t->dim;
    if (t->g_bias) a.g_bias = t->g_bias + (first * t->heads + head) * (long)t->size;
    a.g_bias_row = t->heads;
  }
  return a;
}

static void attend_part(void *job, long begin, long end) {
  struct texts *t = job;
  for (long i = begin; i < end; i++) {
    struct attention a = job_of(t, i);
    if (!(t->out ? t->kernels->attend(&a) : t->kernels->attend_gradient(&a)))
      __atomic_store_n(&t->failed, 1, __ATOMIC_RELAXED); /* by any thread */
  }
}

/* A matrix of `kind` whose rows are whole, however far apart they are. */
static PyArrayObject *rows_of(PyObject *object, int kind) {
  if (!PyArray_CheckExact(object)) return NULL;
  PyArrayObject *array = (PyArrayObject *)object;
  if (PyArray_TYPE(array) != kind || !PyArray_ISBEHAVED_RO(array) || PyArray_NDIM(array) != 2) return NULL;
  const npy_intp size = PyArray_ITEMSIZE(array);
  return PyArray_STRIDE(array, 1) == size && PyArray_STRIDE(array, 0) % size == 0 ? array : NULL;
}

/* Read what is added for each token as a key: None, or a number for each; 0 if it is neither. */
static int read_bias(struct texts *t, PyObject *object, PyArrayObject *qkv) {
  if (object == Py_None) return 1;
  PyArrayObject *bias = plain_of(object, PyArray_TYPE(qkv));
  if (!bias || PyArray_NDIM(bias) != 1 || PyArray_DIM(bias, 0) != PyArray_DIM(qkv, 0)) return 0;
  t->bias = PyArray_DATA(bias);
  return 1;
}

/* Read lengths, heads and scale; 0 unless the texts make up `tokens`. The caller frees `starts`. */
static int read_texts(struct texts *t, PyObject *lengths, PyObject *heads, PyObject *scale, PyArrayObject *qkv) {
  if (!PyTuple_CheckExact(lengths) || !PyLong_CheckExact(heads) || !PyFloat_CheckExact(scale)) return 0;
  t->texts = PyTuple_GET_SIZE(lengths);
  t->heads = PyLong_AsLong(heads);
  t->scale = PyFloat_AS_DOUBLE(scale);
  if (t->heads < 1 || t->heads > PyArray_DIM(qkv, 1) || PyArray_DIM(qkv, 1) % (3 * t->heads)) return PyErr_Clear(), 0;
  t->dim = PyArray_DIM(qkv, 1) / (3 * t->heads);
  t->size = PyArray_ITEMSIZE(qkv);
  t->row = PyArray_STRIDE(qkv, 0) / (long)t->size;
  t->qkv = PyArray_DATA(qkv);
  t->kernels = table_of(PyArray_TYPE(qkv));
  long *starts = PyMem_Malloc(((size_t)t->texts + 1) * sizeof *starts), total = 0;
  if (!starts) return 0;
  const long tokens = PyArray_DIM(qkv, 0);
  int fits = 1;
  for (long i = 0; i < t->texts && fits; i++) {
    PyObject *length = PyTuple_GET_ITEM(lengths, i);
    const long count = PyLong_CheckExact(length) ? PyLong_AsLong(length) : -1;
    if (PyErr_Occurred()) PyErr_Clear();
    fits = count >= 0 && count <= tokens - total;
    starts[i] = total;
    total += fits ? count : 0;
  }
  starts[t->texts] = total;
  t->starts = starts;
  if (fits && total == tokens) return 1;
  PyMem_Free(starts);
  return 0;
}

static int attended(struct texts *t, PyArrayObject *qkv) {
  const long count = t->dim ? t->texts * t->heads : 0;
  run_parts(attend_part, t, count, 1, PyArray_SIZE(qkv) * 8);
  PyMem_Free((void *)t->starts);
  if (t->failed) PyErr_NoMemory();
  return !t->failed;
}

/* ragged_attention(qkv, bias, lengths, heads, scale) -> out, logs */
static PyObject *ragged_attention(PyObject *const *args, Py_ssize_t count) {
  if (count != 5 || !PyArray_CheckExact(args[0])) return DECLINED;
  const int kind = PyArray_TYPE((PyArrayObject *)args[0]);
  PyArrayObject *qkv = kind == NPY_FLOAT || kind == NPY_DOUBLE ? rows_of(args[0], kind) : NULL;
  struct texts t = {0};
  if (!qkv || !read_bias(&t, args[1], qkv) || !read_texts(&t, args[2], args[3], args[4], qkv)) return DECLINED;
  npy_intp tokens = PyArray_DIM(qkv, 0), out_shape[2] = {tokens, t.heads * t.dim}, logs_shape[2] = {tokens, t.heads};
  PyArrayObject *out = (PyArrayObject *)PyArray_EMPTY(2, out_shape, kind, 0);
  PyArrayObject *logs = out ? (PyArrayObject *)PyArray_EMPTY(2, logs_shape, kind, 0) : NULL;
  if (!logs) return PyMem_Free((void *)t.starts), Py_XDECREF(out), NULL;
  t.out = PyArray_DATA(out), t.logs = PyArray_DATA(logs);
  if (!attended(&t, qkv)) return Py_DECREF(out), Py_DECREF(logs), NULL;
  return Py_BuildValue("NN", out, logs);
}

/* ragged_attention_gradient(grad, qkv, bias, logs, lengths, heads, scale) -> that of qkv, that of bias by head or None */
static PyObject *ragged_attention_gradient(PyObject *const *args, Py_ssize_t count) {
  if (count != 7 || !PyArray_CheckExact(args[1])) return DECLINED;
  const int kind = PyArray_TYPE((PyArrayObject *)args[1]);
  PyArrayObject *qkv = kind == NPY_FLOAT || kind == NPY_DOUBLE ? rows_of(args[1], kind) : NULL;
  PyArrayObject *grad = qkv ? rows_of(args[0], kind) : NULL, *logs = grad ? plain_of(args[3], kind) : NULL;
  struct texts t = {0};
  if (!logs || !read_bias(&t, args[2], qkv) || !read_texts(&t, args[4], args[5], args[6], qkv)) return DECLINED;
  npy_intp tokens = PyArray_DIM(qkv, 0), bias_shape[2] = {tokens, t.heads};
  const int fits = PyArray_DIM(grad, 0) == tokens && PyArray_DIM(grad, 1) == t.heads * t.dim &&
                   PyArray_NDIM(logs) == 2 && PyArray_DIM(logs, 0) == tokens && PyArray_DIM(logs, 1) == t.heads;
  if (!fits) return PyMem_Free((void *)t.starts), DECLINED;
  PyArrayObject *found = empty_like(qkv);
  PyObject *of_bias = !found ? NULL : t.bias ? PyArray_ZEROS(2, bias_shape, kind, 0) : Py_NewRef(Py_None);
  if (!of_bias) return PyMem_Free((void *)t.starts), Py_XDECREF(found), NULL;
  t.grad = PyArray_DATA(grad), t.grad_row = PyArray_STRIDE(grad, 0) / (long)t.size;
  t.logs = PyArray_DATA(logs), t.found = PyArray_DATA(found);
  t.g_bias = t.bias ? PyArray_DATA((PyArrayObject *)of_bias) : NULL;
  if (!attended(&t, qkv)) return Py_DECREF(found), Py_DECREF(of_bias), NULL;
  return Py_BuildValue("NN", found, of_bias);
}

const struct binding attention_bindings[] = {{"ragged_attention", ragged_attention},
                                       {"ragged_attention_gradient", ragged_attention_gradient},
                                       {NULL, NULL}};
