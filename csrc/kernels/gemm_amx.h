/* Products of float32 matrices on the processor's tile unit (Intel AMX), as exact as others.

   For gemm_driver.c. Where the compiler or the machine has no such unit, `amx_runs_here` returns 0 and nothing else may be
   called. NOTE [Kernels] in table.h. */
#ifndef GEMM_AMX_H
#define GEMM_AMX_H

#include "matrices.h"

/* Ask the system for the unit; say whether it may be used. */
int amx_runs_here(void);

/* Whether a product is large enough for tiles to be faster than vectors. */
int amx_pays(const struct product *p);

/* Compute a product, on this thread alone or on all. Returns 1; 0 if memory is short; -1 if a number is not finite or too
   small for three bfloat16, and then C may have been written and another kernel must compute it. */
int gemm_amx(const struct product *p, int alone);

#endif
