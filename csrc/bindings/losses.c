/* The Python bindings of losses.c.

   Copies class numbers before it checks them, and gives the copy to the kernel. A class that does not exist gives
   None: the caller raises. NOTE [Bindings]. */
#include "bindings.h"

struct loss_job {
  const struct table *kernels;
  const char *x, *weight, *grads, *sums, *factors;
  npy_int64 *targets; /* a copy: see NOTE [Arrays that change] */
  char *found, *made_sums, *made_factors;
  double smoothing, total_weight;
  long ignored, size, step;
  int streams;
};

static void losses_part(void *job, long begin, long end) {
  struct loss_job *j = job;
  j->kernels->class_losses(j->x, j->targets, j->weight, j->ignored, j->smoothing, j->found, j->made_sums, j->made_factors,
                           begin, end, j->size);
}

static void gradients_part(void *job, long begin, long end) {
  struct loss_job *j = job;
  j->kernels->class_gradients(j->grads, j->step, j->x, j->targets, j->weight, j->total_weight, j->sums, j->factors,
                           j->smoothing, j->found, begin, end, j->size, j->streams);
}

#define FEW 64 /* targets that are copied without malloc */

/* Take rows, one int64 for each, and a weight for each column or None; say whether they are that. The targets are copied
   into `few` or into memory that `give_targets` frees. */
static int taken(struct loss_job *job, PyObject *x_, PyObject *targets_, PyObject *weight_, PyArrayObject **x, int *kind,
                 npy_int64 *few) {
  *x = plain(x_, kind);
  if (!*x || PyArray_NDIM(*x) != 2 || !PyArray_SIZE(*x) || !PyArray_CheckExact(targets_)) return 0;
  PyArrayObject *targets = (PyArrayObject *)targets_, *weight = NULL;
  if (!PyArray_ISCARRAY_RO(targets) || PyArray_TYPE(targets) != NPY_INT64 || PyArray_SIZE(targets) != PyArray_DIM(*x, 0))
    return 0;
  if (weight_ != Py_None && (!(weight = plain_of(weight_, *kind)) || PyArray_SIZE(weight) != PyArray_DIM(*x, 1))) return 0;
  job->kernels = table_of(*kind), job->x = PyArray_DATA(*x);
  job->weight = weight ? PyArray_DATA(weight) : NULL, job->size = PyArray_DIM(*x, 1);
  const long rows = PyArray_DIM(*x, 0);
  job->targets = rows <= FEW ? few : malloc((size_t)rows * sizeof *few);
  if (job->targets) memcpy(job->targets, PyArray_DATA(targets), (size_t)rows * sizeof *few);
  return job->targets != NULL;
}

static void give_targets(struct loss_job *job, const npy_int64 *few) {
  if (job->targets != few) free(job->targets);
}

static int all_classes(const npy_int64 *targets, long rows, long classes, long ignored) {
  for (long row = 0; row < rows; row++)
    if (targets[row] != ignored && (targets[row] < 0 || targets[row] >= classes)) return 0;
  return 1;
}

/* Whether each row that counts has a class; the others are given one. */
static int counted_classes(npy_int64 *targets, const char *factors, int kind, long rows, long classes) {
  for (long row = 0; row < rows; row++) {
    if (targets[row] >= 0 && targets[row] < classes) continue;
    if (kind == NPY_FLOAT ? ((const float *)factors)[row] != 0 : ((const double *)factors)[row] != 0) return 0;
    targets[row] = 0;
  }
  return 1;
}

static PyObject *losses_of(struct loss_job *job, PyArrayObject *x, int kind, int mean, int whole) {
  npy_intp rows = PyArray_DIM(x, 0), pairs[2] = {rows, 2};
  if (!all_classes(job->targets, rows, job->size, job->ignored)) Py_RETURN_NONE;
  PyObject *losses = PyArray_EMPTY(1, &rows, kind, 0), *sums = losses ? PyArray_EMPTY(2, pairs, kind, 0) : NULL;
  PyObject *factors = sums ? PyArray_EMPTY(1, &rows, kind, 0) : NULL;
  PyObject *total = factors && whole ? PyArray_EMPTY(0, NULL, kind, 0) : NULL;
  if (!losses || !sums || !factors || (whole && !total)) {
    Py_XDECREF(losses), Py_XDECREF(sums), Py_XDECREF(factors), Py_XDECREF(total);
    return NULL;
  }
  job->found = PyArray_DATA((PyArrayObject *)losses), job->made_sums = PyArray_DATA((PyArrayObject *)sums);
  job->made_factors = PyArray_DATA((PyArrayObject *)factors);
  run_parts(losses_part, job, rows, SMALL / job->size, PyArray_SIZE(x));
  if (!whole) return Py_BuildValue("(NNN)", losses, sums, factors);
  double found = job->kernels->mean_loss(job->found, job->made_factors, job->targets, job->weight, mean, rows);
  if (kind == NPY_FLOAT) *(float *)PyArray_DATA((PyArrayObject *)total) = (float)found;
  else *(double *)PyArray_DATA((PyArrayObject *)total) = found;
  Py_DECREF(losses);
  return Py_BuildValue("(NNN)", total, sums, factors);
}

/* class_losses(x, targets, weight, ignored, reduction, smoothing) -> loss, sums, factors; None for a wrong target */
static PyObject *class_losses(PyObject *const *args, Py_ssize_t count) {
  struct loss_job job = {0};
  PyArrayObject *x;
  npy_int64 few[FEW];
  int kind;
  if (count != 6 || !PyLong_Check(args[3]) || !PyUnicode_Check(args[4]) || !PyFloat_Check(args[5])) return DECLINED;
  job.ignored = PyLong_AsLong(args[3]), job.smoothing = PyFloat_AS_DOUBLE(args[5]);
  if (job.ignored == -1 && PyErr_Occurred()) return PyErr_Clear(), DECLINED;
  if (!taken(&job, args[0], args[1], args[2], &x, &kind, few)) return DECLINED;
  int mean = !PyUnicode_CompareWithASCIIString(args[4], "mean");
  PyObject *found = losses_of(&job, x, kind, mean, mean || !PyUnicode_CompareWithASCIIString(args[4], "sum"));
  give_targets(&job, few);
  return found;
}

static PyObject *gradients_of(struct loss_job *job, PyArrayObject *x, int kind, PyObject *grads_, PyObject *sums_,
                           PyObject *factors_) {
  long rows = PyArray_DIM(x, 0);
  PyArrayObject *grads = plain_of(grads_, kind), *sums = plain_of(sums_, kind), *factors = plain_of(factors_, kind);
  if (!grads || !sums || !factors || PyArray_SIZE(sums) != 2 * rows || PyArray_SIZE(factors) != rows) return DECLINED;
  if (PyArray_SIZE(grads) != 1 && PyArray_SIZE(grads) != rows) return DECLINED;
  if (!counted_classes(job->targets, PyArray_DATA(factors), kind, rows, job->size)) return DECLINED;
  PyArrayObject *found = empty_like(x);
  if (!found) return NULL;
  job->grads = PyArray_DATA(grads), job->step = PyArray_SIZE(grads) == rows && rows > 1;
  job->sums = PyArray_DATA(sums), job->factors = PyArray_DATA(factors);
  job->found = PyArray_DATA(found), job->total_weight = (double)job->size;
  if (job->weight && job->smoothing) {
    job->total_weight = 0;
    for (long i = 0; i < job->size; i++)
      job->total_weight += kind == NPY_FLOAT ? (double)((const float *)job->weight)[i] : ((const double *)job->weight)[i];
  }
  job->streams = PyArray_NBYTES(x) > STREAMED && job->size >= 512; /* the target's number is written twice */
  run_parts(gradients_part, job, rows, SMALL / job->size, PyArray_SIZE(x));
  return (PyObject *)found;
}

/* class_gradients(grad, x, targets, weight, sums, factors, smoothing) -> the gradient for x */
static PyObject *class_gradients(PyObject *const *args, Py_ssize_t count) {
  struct loss_job job = {0};
  PyArrayObject *x;
  npy_int64 few[FEW];
  int kind;
  if (count != 7 || !PyFloat_Check(args[6]) || !taken(&job, args[1], args[2], args[3], &x, &kind, few)) return DECLINED;
  job.smoothing = PyFloat_AS_DOUBLE(args[6]);
  PyObject *found = gradients_of(&job, x, kind, args[0], args[4], args[5]);
  give_targets(&job, few);
  return found;
}

const struct binding loss_bindings[] = {{"class_losses", class_losses}, {"class_gradients", class_gradients}, {NULL, NULL}};
