/* Elimination in batches of matrices. */
#ifndef FACTORS_H
#define FACTORS_H

#define FACTORS(K) \
  K(eliminate_columns, void, \
    (void *work, int32_t *pivots, long begin, long end, long rows, long columns, long count, long start, long stop))

#endif
