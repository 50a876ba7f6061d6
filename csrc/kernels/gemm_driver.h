/* Products of matrices on all threads: how each is cut, and which operand is copied. Memory to work in.

   For bindings and kernels, with or without the GIL. Matrices lie as `struct product` says: the caller has checked it.
   Nothing here calls Python or raises; what cannot have memory returns 0 or NULL. */
#ifndef GEMM_DRIVER_H
#define GEMM_DRIVER_H

#include <stddef.h>

#include "table.h"

/* Compute a product on all threads. The result does not depend on how many there are. Returns 0 if memory is short. */
int gemm(const struct table *kernels, size_t size, struct product *p);

/* The same on this thread alone: for parts of a larger job. */
int gemm_on_this_thread(const struct table *kernels, size_t size, struct product *p);

/* Use the tile unit (gemm_amx.h) for large products of float32, or do not; say whether it is used from now on. */
int gemm_use_amx(int wanted);

/* Memory to work in, kept for the next one who asks: fresh pages cost more than most products. */
void *scratch_take(size_t bytes);
void scratch_give(void *memory);

#endif
