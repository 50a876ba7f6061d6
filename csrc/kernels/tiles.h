/* Products of float32 matrices on the processor's tile unit (Intel AMX), as exact as others.

   For products.c. Where the compiler or the machine has no such unit, `tiles_run_here` returns 0 and nothing else may be
   called. NOTE [Kernels] in table.h. */
#ifndef TILES_H
#define TILES_H

#include "matrices.h"

/* Ask the system for the unit; say whether it may be used. */
int tiles_run_here(void);

/* Whether a product is large enough for tiles to be faster than vectors. */
int tiles_pay(const struct product *p);

/* Compute a product, on this thread alone or on all. Returns 1; 0 if memory is short; -1 if a number is not finite or too
   small for three bfloat16, and then C may have been written and another kernel must compute it. */
int tiles_product(const struct product *p, int alone);

#endif
