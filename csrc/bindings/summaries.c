/* The Python bindings of summaries.c and core/nonfinite.c.

   Checks that arrays are plain and not empty where that matters; addresses that it returns are for comparison only.
   NOTE [Bindings]. */
#include "core.h"

#define PART 4096 /* numbers: sums in float stay exact enough, and it is all still in the cache if done again */

struct summary_job {
  const struct table *kernels;
  const char *numbers;
  long count, size; /* of all numbers; of one, in bytes */
  struct part_summary *parts;
};

static void summary_parts(void *job, long begin, long end) {
  struct summary_job *j = job;
  for (long part = begin; part < end; part++) {
    long first = part * PART, count = j->count - first < PART ? j->count - first : PART;
    j->kernels->summary_of(j->numbers + first * j->size, count, j->parts + part);
  }
}

/* numbers_in_short(x) -> (least, most, sum, sum of squares, NaNs, infinities, zeros) */
static PyObject *numbers_in_short(PyObject *const *args, Py_ssize_t count) {
  int kind;
  PyArrayObject *x = count == 1 ? plain(args[0], &kind) : NULL;
  if (!x || !PyArray_SIZE(x)) return DECLINED;
  long parts = (PyArray_SIZE(x) + PART - 1) / PART;
  struct part_summary one, *found = parts == 1 ? &one : PyMem_RawMalloc((size_t)parts * sizeof *found);
  if (!found) return PyErr_NoMemory();
  struct summary_job job = {table_of(kind), PyArray_DATA(x), PyArray_SIZE(x), PyArray_ITEMSIZE(x), found};
  /* Alone: the pool's threads would take the cores from PyTorch's, which spin between its own ops. */
  Py_BEGIN_ALLOW_THREADS;
  summary_parts(&job, 0, parts);
  Py_END_ALLOW_THREADS;
  struct part_summary all = found[0];
  for (long part = 1; part < parts; part++) {
    all.least = found[part].least < all.least ? found[part].least : all.least;
    all.most = found[part].most > all.most ? found[part].most : all.most;
    all.sum += found[part].sum;
    all.square += found[part].square;
    all.nans += found[part].nans;
    all.infs += found[part].infs;
    all.zeros += found[part].zeros;
  }
  if (found != &one) PyMem_RawFree(found);
  return Py_BuildValue("(ddddlll)", all.least, all.most, all.sum, all.square, all.nans, all.infs, all.zeros);
}

/* whole_memory(x) -> (address, bytes) of the array that x is a view of, through all views in between. */
static PyObject *whole_memory(PyObject *const *args, Py_ssize_t count) {
  if (count != 1 || !PyArray_Check(args[0])) return DECLINED;
  PyArrayObject *whole = (PyArrayObject *)args[0];
  while (PyArray_BASE(whole) && PyArray_Check(PyArray_BASE(whole))) whole = (PyArrayObject *)PyArray_BASE(whole);
  return Py_BuildValue("(nn)", (Py_ssize_t)PyArray_DATA(whole), (Py_ssize_t)PyArray_NBYTES(whole));
}

/* nonfinite_kinds(x) -> FOUND_NAN, FOUND_INF, both or 0 */
static PyObject *nonfinite_kinds(PyObject *const *args, Py_ssize_t count) {
  return count == 1 ? PyLong_FromLong(nonfinite_in(args[0])) : DECLINED;
}

const struct binding summary_bindings[] = {
    {"numbers_in_short", numbers_in_short}, {"whole_memory", whole_memory}, {"nonfinite_kinds", nonfinite_kinds}, {NULL, NULL}};
