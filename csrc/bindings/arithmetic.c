/* The Python bindings of arithmetic.c. Of two operands one may be a number, one row of the other, or one column;
   NumPy's scalars and 0-d arrays give NumPy scalars, as from NumPy's own operators.

   Checks types, layouts and how one shape is stretched to the other; sums only over leading or trailing dims. NOTE
   [Bindings]. */
#include <stddef.h>

#include "bindings.h"

#include <numpy/arrayscalars.h>

#define BLOCK 1024 /* numbers; threads share work in blocks */
#define GRAIN 32   /* blocks that one thread must get */
#define CHUNK 256  /* rows that are summed into one */

typedef void(*two_kernel) OF_TWO;

struct two_job {
  two_kernel run;
  struct operand a, b;
  char *out;
  long rows, size, width; /* a flat job has rows 0: its blocks are shared out */
};

static struct operand moved(struct operand operand, long rows, long numbers, long width) {
  operand.at += (rows * operand.step + (operand.single ? 0 : numbers)) * width;
  return operand;
}

static void two_part(void *job, long begin, long end) {
  struct two_job *j = job;
  if (j->rows) {
    struct operand a = moved(j->a, begin, 0, j->width), b = moved(j->b, begin, 0, j->width);
    j->run(&a, &b, j->out + begin * j->size * j->width, end - begin, j->size);
    return;
  }
  long first = begin * BLOCK, last = end * BLOCK < j->size ? end * BLOCK : j->size;
  struct operand a = moved(j->a, 0, first, j->width), b = moved(j->b, 0, first, j->width);
  j->run(&a, &b, j->out + first * j->width, 1, last - first);
}

/* A float32 or float64, as NumPy scalar or 0-d array: where it stands, or NULL. */
static const char *number_at(PyObject *object, int *kind) {
  if (PyArray_IsScalar(object, Float)) return *kind = NPY_FLOAT, (char *)&PyArrayScalar_VAL(object, Float);
  if (PyArray_IsScalar(object, Double)) return *kind = NPY_DOUBLE, (char *)&PyArrayScalar_VAL(object, Double);
  PyArrayObject *array = plain(object, kind);
  return array && !PyArray_NDIM(array) ? PyArray_BYTES(array) : NULL;
}

static PyObject *scalar_from(const void *number, int kind) {
  PyObject *found = kind == NPY_FLOAT ? PyArrayScalar_New(Float) : PyArrayScalar_New(Double);
  if (found && kind == NPY_FLOAT) memcpy(&PyArrayScalar_VAL(found, Float), number, sizeof(npy_float));
  if (found && kind == NPY_DOUBLE) memcpy(&PyArrayScalar_VAL(found, Double), number, sizeof(npy_double));
  return found;
}

/* Say how the small array is stretched to the shape of the large one: as a row, or as a column. */
static int stretch(PyArrayObject *large, PyArrayObject *small, struct operand *operand, long *rows, long *size) {
  int dims = PyArray_NDIM(large), missing = dims - PyArray_NDIM(small), same = 0, first;
  if (missing < 0) return 0;
  const npy_intp *of_large = PyArray_DIMS(large), *of_small = PyArray_DIMS(small) - missing;
  for (first = dims; first > missing && of_small[first - 1] == of_large[first - 1]; first--) same = 1;
  int ones = missing;
  while (ones < first && of_small[ones] == 1) ones++;
  if (same && ones == first) {
    *size = PyArray_SIZE(small), *rows = PyArray_SIZE(large) / *size;
    *operand = (struct operand){PyArray_BYTES(small), 0, 0};
    return 1;
  }
  if (missing) return 0;
  for (first = 0; first < dims && of_small[first] == of_large[first]; first++) continue;
  for (ones = dims; ones > first && of_small[ones - 1] == 1; ones--) continue;
  if (ones > first) return 0;
  *rows = PyArray_SIZE(small), *size = PyArray_SIZE(large) / *rows;
  *operand = (struct operand){PyArray_BYTES(small), 1, 1};
  return 1;
}

static PyObject *of_arrays(size_t place, PyArrayObject *a, PyArrayObject *b, const char *number, int kind) {
  PyArrayObject *large = a ? a : b;
  struct two_job job = {.width = PyArray_ITEMSIZE(large), .size = PyArray_SIZE(large)};
  if (!a || !b) {
    struct operand one = {number, 0, 1}, many = {PyArray_BYTES(large), 0, 0};
    job.a = a ? many : one, job.b = b ? many : one;
  } else if (same_shape(a, b)) {
    job.a = (struct operand){PyArray_BYTES(a), 0, 0}, job.b = (struct operand){PyArray_BYTES(b), 0, 0};
  } else {
    if (!PyArray_SIZE(a) || !PyArray_SIZE(b)) return DECLINED;
    int swapped = PyArray_NDIM(a) < PyArray_NDIM(b) || (PyArray_NDIM(a) == PyArray_NDIM(b) && PyArray_SIZE(a) < PyArray_SIZE(b));
    large = swapped ? b : a;
    if (!stretch(large, swapped ? a : b, swapped ? &job.a : &job.b, &job.rows, &job.size)) return DECLINED;
    *(swapped ? &job.b : &job.a) = (struct operand){PyArray_BYTES(large), job.size, 0};
  }
  PyArrayObject *out = empty_like(large);
  if (!out) return NULL;
  job.out = PyArray_BYTES(out);
  job.run = *(const two_kernel *)((const char *)table_of(kind) + place);
  long numbers = PyArray_SIZE(large);
  if (job.rows)
    run_parts(two_part, &job, job.rows, GRAIN * BLOCK / job.size, numbers);
  else
    run_parts(two_part, &job, (numbers + BLOCK - 1) / BLOCK, GRAIN, numbers);
  return (PyObject *)out;
}

static PyObject *of_two(size_t place, PyObject *const *args, Py_ssize_t count) {
  if (count != 2) return DECLINED;
  int kind, other;
  const char *first = number_at(args[0], &kind), *second = number_at(args[1], &other);
  PyArrayObject *a = first ? NULL : plain(args[0], &kind), *b = second ? NULL : plain(args[1], &other);
  if (!(first || a) || !(second || b) || kind != other) return DECLINED;
  if (a || b) return of_arrays(place, a, b, first ? first : second, kind);
  double room;
  struct operand x = {first, 0, 1}, y = {second, 0, 0};
  (*(const two_kernel *)((const char *)table_of(kind) + place))(&x, &y, &room, 1, 1);
  return scalar_from(&room, kind);
}

#define OPERATOR(name) \
  static PyObject *name(PyObject *const *args, Py_ssize_t count) { return of_two(offsetof(struct table, name), args, count); }
OPERATOR(plus)
OPERATOR(minus)
OPERATOR(times)
OPERATOR(over)

struct sum_job {
  const struct table *kernels;
  const char *x;
  char *out;
  long rows, size, width;
};

static void row_part(void *job, long begin, long end) {
  struct sum_job *j = job;
  j->kernels->row_totals(j->x + begin * j->size * j->width, j->out + begin * j->width, end - begin, j->size);
}

/* Each chunk of rows gives one row of sums. */
static void column_part(void *job, long begin, long end) {
  struct sum_job *j = job;
  for (; begin < end; begin++) {
    long first = begin * CHUNK, rows = j->rows - first < CHUNK ? j->rows - first : CHUNK;
    j->kernels->column_totals(j->x + first * j->size * j->width, j->out + begin * j->size * j->width, rows, j->size);
  }
}

/* Each block gives its exact sum. */
#define SUM_PART 16384
static void whole_part(void *job, long begin, long end) {
  struct sum_job *j = job;
  for (; begin < end; begin++) {
    long first = begin * SUM_PART, size = j->size - first < SUM_PART ? j->size - first : SUM_PART;
    ((double *)j->out)[begin] = j->kernels->exact_sum(j->x + first * j->width, size);
  }
}

static PyObject *whole_sum(struct sum_job *job, int kind) {
  double few[64], *parts = few;
  long count = (job->size + SUM_PART - 1) / SUM_PART;
  if (count > 64 && !(parts = PyMem_Malloc((size_t)count * sizeof *parts))) return PyErr_NoMemory();
  job->out = (char *)parts;
  run_parts(whole_part, job, count, 2, job->size);
  double sum = kernels_of_double->exact_sum(parts, count);
  if (parts != few) PyMem_Free(parts);
  float rounded = (float)sum;
  return scalar_from(kind == NPY_FLOAT ? (void *)&rounded : (void *)&sum, kind);
}

/* Sum chunks of rows, then chunks of these sums, until one chunk is left; each level stands behind the one before. */
static int column_totals(struct sum_job *job) {
  long chunks = (job->rows + CHUNK - 1) / CHUNK, width = job->size * job->width, numbers = job->rows * job->size;
  if (chunks == 1) return column_part(job, 0, 1), 1;
  char *found = job->out, *parts = PyMem_Malloc((size_t)((chunks + chunks / (CHUNK / 2) + 2) * width));
  if (!parts) return PyErr_NoMemory(), 0;
  job->out = parts;
  run_parts(column_part, job, chunks, GRAIN * BLOCK / (CHUNK * job->size), numbers);
  for (job->x = parts, job->rows = chunks; job->rows > CHUNK; job->x = job->out, job->rows = chunks) {
    chunks = (job->rows + CHUNK - 1) / CHUNK;
    job->out = (char *)job->x + job->rows * width;
    column_part(job, 0, chunks);
  }
  job->out = found;
  column_part(job, 0, 1);
  PyMem_Free(parts);
  return 1;
}

/* Which dims are summed, as bits; 0 if that is no tuple of different dims. */
static unsigned long summed_dims(PyObject *tuple, int dims) {
  unsigned long found = 0;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); i++) {
    PyObject *item = PyTuple_GET_ITEM(tuple, i);
    long dim = PyLong_CheckExact(item) ? PyLong_AsLong(item) : dims;
    if (dim == -1 && PyErr_Occurred()) return PyErr_Clear(), 0;
    if (dim < 0) dim += dims;
    if (dim < 0 || dim >= dims || found >> dim & 1) return 0;
    found |= 1ul << dim;
  }
  return found;
}

/* summed(x, dims, keepdim): over all dims (None), the first ones or the last ones */
static PyObject *summed(PyObject *const *args, Py_ssize_t count) {
  int kind;
  PyArrayObject *x = count == 3 ? plain(args[0], &kind) : NULL;
  int dims = x ? PyArray_NDIM(x) : 0;
  if (!dims || dims > 32 || !PyArray_SIZE(x) || !PyBool_Check(args[2])) return DECLINED;
  if (args[1] != Py_None && !PyTuple_CheckExact(args[1])) return DECLINED;
  unsigned long every = (1ul << dims) - 1, over = args[1] == Py_None ? every : summed_dims(args[1], dims);
  struct sum_job job = {.kernels = table_of(kind), .x = PyArray_BYTES(x), .width = PyArray_ITEMSIZE(x)};
  int keep = args[2] == Py_True;
  if (over == every && !keep) return job.size = PyArray_SIZE(x), whole_sum(&job, kind);
  npy_intp shape[32], before = 1, after = 1;
  int left = 0, cut = 0;
  int leading = over & 1; /* summed dims are the first `cut`, or else the kept ones are */
  while (cut < dims && (int)(over >> cut & 1) == leading) cut++;
  if (!over || (over ^ (leading ? every >> (dims - cut) : every & ~(every >> (dims - cut))))) return DECLINED;
  for (int dim = 0; dim < dims; dim++) {
    *(dim < cut ? &before : &after) *= PyArray_DIM(x, dim);
    if (!(over >> dim & 1)) shape[left++] = PyArray_DIM(x, dim);
    else if (keep) shape[left++] = 1;
  }
  PyArrayObject *out = (PyArrayObject *)PyArray_EMPTY(left, shape, kind, 0);
  if (!out) return NULL;
  int by_rows = !leading || cut == dims;
  job.out = PyArray_BYTES(out), job.rows = by_rows && leading ? 1 : before, job.size = by_rows && leading ? before : after;
  if (by_rows)
    run_parts(row_part, &job, job.rows, GRAIN * BLOCK / job.size, before * after);
  else if (!column_totals(&job)) {
    Py_DECREF(out);
    return NULL;
  }
  return (PyObject *)out;
}

const struct binding arithmetic_bindings[] = {{"plus", plus},   {"minus", minus},   {"times", times},
                                        {"over", over}, {"summed", summed}, {NULL, NULL}};
