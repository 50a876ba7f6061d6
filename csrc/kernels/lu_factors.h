/* Elimination in batches of matrices.

   Declares what the family puts into the table of table.h, for bindings/lu_factors.c, which checks the columns; what each
   expects is said beside it. */
#ifndef LU_FACTORS_H
#define LU_FACTORS_H

#define LU_FACTORS(K) \
  K(eliminate_columns, void, \
    (void *work, int32_t *pivots, long begin, long end, long rows, long columns, long count, long start, long stop))

#endif
