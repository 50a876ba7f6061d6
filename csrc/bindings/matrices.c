/* The Python bindings of matrix products: matmul and linear (kernels/gemm_driver.c), column_sums (kernels/gemv.c).

   Checks types and shapes; strides may be any multiples of an item, 0 and negative ones too. NOTE [Bindings]. */
#include "bindings.h"
#include "gemm_driver.h"

#define MOST_DIMS NPY_MAXDIMS
#define LITTLE 32768    /* multiplications that are done with the interpreter locked */
#define BY_ITSELF 2e6   /* from here on, a product of a stack is itself cut in parts */

/* Whether an object is an array of `kind` whose strides count whole numbers; C order is not asked for. */
static PyArrayObject *strided(PyObject *object, int *kind) {
  if (!PyArray_CheckExact(object)) return NULL;
  PyArrayObject *array = (PyArrayObject *)object;
  *kind = PyArray_TYPE(array);
  if ((*kind != NPY_FLOAT && *kind != NPY_DOUBLE) || !PyArray_ISBEHAVED_RO(array)) return NULL;
  for (int i = 0; i < PyArray_NDIM(array); i++)
    if (PyArray_STRIDE(array, i) % PyArray_ITEMSIZE(array)) return NULL;
  return array;
}

static long stride(PyArrayObject *array, int dim) { return PyArray_STRIDE(array, dim) / PyArray_ITEMSIZE(array); }

/* A product of the last two dims of each, into `out`, which is in C order. */
static struct product product_of(PyArrayObject *a, PyArrayObject *b, PyArrayObject *out) {
  int i = PyArray_NDIM(a) - 2, j = PyArray_NDIM(b) - 2;
  long n = PyArray_DIM(b, j + 1);
  return (struct product){.a = PyArray_DATA(a), .b = PyArray_DATA(b), .c = PyArray_DATA(out), .m = PyArray_DIM(a, i), .n = n,
                          .k = PyArray_DIM(b, j), .a_row = stride(a, i), .a_step = stride(a, i + 1),
                          .b_step = stride(b, j), .b_column = stride(b, j + 1), .c_row = n, .c_column = 1};
}

static double work_of(const struct product *p) { return (double)p->m * p->n * p->k; }

static PyObject *done(PyArrayObject *out, int enough) {
  if (enough) return (PyObject *)out;
  Py_DECREF(out);
  return PyErr_NoMemory();
}

/* Run one product, without the interpreter's lock if it is large. */
static PyObject *multiplied(struct product *p, PyArrayObject *out, int kind) {
  int enough;
  if (work_of(p) <= LITTLE) return done(out, gemm_on_this_thread(table_of(kind), PyArray_ITEMSIZE(out), p));
  Py_BEGIN_ALLOW_THREADS;
  enough = gemm(table_of(kind), PyArray_ITEMSIZE(out), p);
  Py_END_ALLOW_THREADS;
  return done(out, enough);
}

/* --- stacks ------------------------------------------------------------------------------------------------------ */

struct stack {
  const struct table *kernels;
  struct product first;
  size_t size;
  int dims, failed;
  npy_intp shape[MOST_DIMS], a_stride[MOST_DIMS], b_stride[MOST_DIMS]; /* strides count bytes, 0 where it broadcasts */
};

static struct product at(const struct stack *stack, long index) {
  struct product p = stack->first;
  p.c = (char *)p.c + (size_t)index * (size_t)(p.m * p.n) * stack->size;
  for (int dim = stack->dims - 1; dim >= 0; dim--) {
    long place = index % stack->shape[dim];
    index /= stack->shape[dim];
    p.a = (const char *)p.a + place * stack->a_stride[dim];
    p.b = (const char *)p.b + place * stack->b_stride[dim];
  }
  return p;
}

static void stack_part(void *job, long begin, long end) {
  struct stack *stack = job;
  for (long i = begin; i < end; i++) {
    struct product p = at(stack, i);
    if (!gemm_on_this_thread(stack->kernels, stack->size, &p)) __atomic_store_n(&stack->failed, 1, __ATOMIC_RELAXED);
  }
}

/* Broadcast the dims before the last two; 0 if they do not fit. */
static int broadcast(struct stack *stack, PyArrayObject *a, PyArrayObject *b) {
  int left = PyArray_NDIM(a) - 2, right = PyArray_NDIM(b) - 2;
  stack->dims = left > right ? left : right;
  for (int dim = 0; dim < stack->dims; dim++) {
    int i = dim - stack->dims + left, j = dim - stack->dims + right;
    npy_intp of_a = i < 0 ? 1 : PyArray_DIM(a, i), of_b = j < 0 ? 1 : PyArray_DIM(b, j);
    if (of_a != of_b && of_a != 1 && of_b != 1) return 0;
    stack->shape[dim] = of_a == 1 ? of_b : of_a;
    stack->a_stride[dim] = of_a == 1 ? 0 : PyArray_STRIDE(a, i);
    stack->b_stride[dim] = of_b == 1 ? 0 : PyArray_STRIDE(b, j);
  }
  return 1;
}

static PyObject *stacks(PyArrayObject *a, PyArrayObject *b, int kind) {
  struct stack stack = {.kernels = table_of(kind), .size = PyArray_ITEMSIZE(a)};
  if (!broadcast(&stack, a, b)) return DECLINED;
  stack.shape[stack.dims] = PyArray_DIM(a, PyArray_NDIM(a) - 2);
  stack.shape[stack.dims + 1] = PyArray_DIM(b, PyArray_NDIM(b) - 1);
  PyArrayObject *out = (PyArrayObject *)PyArray_EMPTY(stack.dims + 2, stack.shape, kind, 0);
  if (!out) return NULL;
  stack.first = product_of(a, b, out);
  double each = work_of(&stack.first);
  if (!PyArray_SIZE(out)) return (PyObject *)out;
  long count = PyArray_SIZE(out) / (stack.first.m * stack.first.n);
  if (each >= BY_ITSELF) {
    Py_BEGIN_ALLOW_THREADS;
    for (long i = 0; i < count; i++) {
      struct product p = at(&stack, i);
      if (!gemm(stack.kernels, stack.size, &p)) stack.failed = 1;
    }
    Py_END_ALLOW_THREADS;
  } else {
    run_parts(stack_part, &stack, count, (long)(2e5 / (each + 1)) + 1, each * count > LITTLE ? SMALL + 1 : 1);
  }
  return done(out, !stack.failed);
}

/* --- bindings ---------------------------------------------------------------------------------------------------- */

/* matmul(a, b) */
static PyObject *matmul(PyObject *const *args, Py_ssize_t count) {
  int kind, other;
  PyArrayObject *a = count == 2 ? strided(args[0], &kind) : NULL, *b = a ? strided(args[1], &other) : NULL;
  if (!b || kind != other || PyArray_NDIM(a) < 2 || PyArray_NDIM(b) < 2) return DECLINED;
  npy_intp m = PyArray_DIM(a, PyArray_NDIM(a) - 2), k = PyArray_DIM(a, PyArray_NDIM(a) - 1);
  npy_intp n = PyArray_DIM(b, PyArray_NDIM(b) - 1);
  if (k != PyArray_DIM(b, PyArray_NDIM(b) - 2)) return DECLINED;
  if (PyArray_NDIM(a) > 2 || PyArray_NDIM(b) > 2) return stacks(a, b, kind);
  npy_intp shape[2] = {m, n};
  PyArrayObject *out = (PyArrayObject *)PyArray_EMPTY(2, shape, kind, 0);
  if (!out) return NULL;
  struct product p = product_of(a, b, out);
  return multiplied(&p, out, kind);
}

/* linear(x, weight, bias): rows of x · weightᵀ + bias; the bias may be None. */
static PyObject *linear(PyObject *const *args, Py_ssize_t count) {
  int kind, other;
  PyArrayObject *x = count == 3 ? strided(args[0], &kind) : NULL, *weight = x ? strided(args[1], &other) : NULL;
  if (!weight || kind != other || !PyArray_NDIM(x) || PyArray_NDIM(weight) != 2) return DECLINED;
  const int dims = PyArray_NDIM(x);
  const npy_intp k = PyArray_DIM(x, dims - 1), n = PyArray_DIM(weight, 0);
  if (k != PyArray_DIM(weight, 1) || (dims != 2 && !PyArray_IS_C_CONTIGUOUS(x))) return DECLINED;
  PyArrayObject *bias = args[2] == Py_None ? NULL : plain_of(args[2], kind);
  if (args[2] != Py_None && (!bias || PyArray_NDIM(bias) != 1 || PyArray_DIM(bias, 0) != n)) return DECLINED;
  npy_intp m = 1;
  for (int i = 0; i < dims - 1; i++) m *= PyArray_DIM(x, i);
  npy_intp shape[2] = {m, n};
  PyArrayObject *out = (PyArrayObject *)PyArray_EMPTY(2, shape, kind, 0);
  if (!out) return NULL;
  struct product p = {.a = PyArray_DATA(x), .b = PyArray_DATA(weight), .c = PyArray_DATA(out), .m = m, .n = n, .k = k,
                      .a_row = dims == 2 ? stride(x, 0) : k, .a_step = dims == 2 ? stride(x, 1) : 1,
                      .b_step = stride(weight, 1), .b_column = stride(weight, 0), .c_row = n, .c_column = 1,
                      .bias = bias ? PyArray_DATA(bias) : NULL, .bias_column = 1};
  return multiplied(&p, out, kind);
}

struct sums_job {
  const struct table *kernels;
  const char *x;
  char *out;
  long rows, columns, size;
};

static void sums_part(void *job, long begin, long end) {
  struct sums_job *j = job;
  j->kernels->column_sums(j->x + begin * 16 * j->size, j->out + begin * 16 * j->size, j->rows,
                          end * 16 < j->columns ? (end - begin) * 16 : j->columns - begin * 16, j->columns);
}

/* column_sums(x) of a matrix; each thread takes some columns, by sixteen. */
static PyObject *column_sums(PyObject *const *args, Py_ssize_t count) {
  int kind;
  PyArrayObject *x = count == 1 ? plain(args[0], &kind) : NULL;
  if (!x || PyArray_NDIM(x) != 2) return DECLINED;
  npy_intp columns = PyArray_DIM(x, 1);
  PyArrayObject *out = (PyArrayObject *)PyArray_EMPTY(1, &columns, kind, 0);
  if (!out) return NULL;
  struct sums_job job = {table_of(kind), PyArray_DATA(x), PyArray_DATA(out), PyArray_DIM(x, 0), columns, PyArray_ITEMSIZE(x)};
  run_parts(sums_part, &job, (columns + 15) / 16, 1 + 32768 / (16 * (job.rows + 1)), PyArray_SIZE(x));
  return (PyObject *)out;
}

const struct binding matrix_bindings[] = {{"matmul", matmul}, {"linear", linear}, {"column_sums", column_sums}, {NULL, NULL}};
