/* The kernels of one level and type, as pointers. `void *` stands for arrays of that type.

   A family lists its kernels in <family>.h, writes them in <family>.c with names N(...), and their Python bindings in
   bindings/<family>.c.

   NOTE [Kernels]
   Kernels are called by bindings, on any thread, mostly without the GIL. They know nothing of Python, raise nothing
   and take no memory, unless their file says so. Sizes, shapes, types and overlaps were checked by the binding. Values
   were not: they may be anything, and those that are indices are checked where they are read, for they may change
   meanwhile. */
#ifndef TABLE_H
#define TABLE_H

#include <stdint.h>

/* An int64 that another thread may write meanwhile: what is checked is what is used. */
static inline int64_t read_once(const void *at) { return __atomic_load_n((const int64_t *)at, __ATOMIC_RELAXED); }

#include "arithmetic.h"
#include "distances.h"
#include "grid_samples.h"
#include "lu_factors.h"
#include "matrices.h"
#include "optimizer_steps.h"
#include "pointwise.h"
#include "pooling.h"
#include "programs.h"
#include "random_numbers.h"
#include "recurrence.h"
#include "rows.h"
#include "slices.h"
#include "summaries.h"
#include "topk.h"
#include "windows.h"

#define KERNELS(K) \
  ARITHMETIC(K) DISTANCES(K) GRID_SAMPLES(K) LU_FACTORS(K) MATRICES(K) OPTIMIZER_STEPS(K) POINTWISE(K) POOLING(K) \
  PROGRAMS(K) RANDOM_NUMBERS(K) RECURRENCE(K) ROWS(K) SLICES(K) SUMMARIES(K) TOPK(K) WINDOWS(K)

#define POINTER(name, result, arguments) result(*name) arguments;
struct table {
  KERNELS(POINTER)
};
#undef POINTER

/* The tables of the level in use, for float and double. */
extern const struct table *kernels_of_float, *kernels_of_double;

#endif
