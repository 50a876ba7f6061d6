/* Windows of planes or volumes reduced to one number each: the largest, the mean; and bins of adaptive pooling.

   Declares what the family puts into the table of table.h, for bindings/pooling.c, which lays windows and bins out; what
   each expects is said beside it. */
#ifndef POOLING_H
#define POOLING_H

enum { POOLED_DIMS = 3, MOST_POOLED = 1024 };

/* How planes are pooled; fewer dims than three have size 1 in front. Windows are met in a padded copy of a plane, in which
   the columns lie by their place modulo the stride: what one element of the kernel meets lies side by side. */
struct pooling {
  long size[POOLED_DIMS], places[POOLED_DIMS], kernel[POOLED_DIMS], stride[POOLED_DIMS], padding[POOLED_DIMS],
      dilation[POOLED_DIMS], padded[POOLED_DIMS];
  long plane, area;     /* numbers in a plane; windows over it */
  long strand, row;     /* in the copy: numbers of one place modulo the stride in a row; numbers in a row */
  long taps;
  const long *met, *step; /* where the elements of the kernel lie from a window's first on: in the copy, in the plane */
  const double *count[POOLED_DIMS]; /* what means are divided by, the product of one number a dim */
};

/* Adaptive windows: bin i of a dim runs from start[i] to stop[i]. */
struct bins {
  long size[POOLED_DIMS], places[POOLED_DIMS], plane, area;
  const long *start[POOLED_DIMS], *stop[POOLED_DIMS];
};

/* Planes begin to end; `scratch` has room for the copy, and for two rows of windows. */
#define POOLING(K) \
  K(windows_largest, void, (const struct pooling *p, const void *x, void *values, int64_t *indices, int64_t *flat, \
                            void *scratch, long begin, long end)) \
  K(windows_means, void, (const struct pooling *p, const void *x, void *out, void *scratch, long begin, long end)) \
  K(windows_shared, void, (const struct pooling *p, const void *grad, void *out, void *scratch, long begin, long end)) \
  K(bins_largest, void, (const struct bins *b, const void *x, void *values, int64_t *indices, int64_t *flat, long begin, long end)) \
  K(bins_means, void, (const struct bins *b, const void *x, void *out, void *scratch, long begin, long end)) \
  K(bins_shared, void, (const struct bins *b, const void *grad, void *out, void *scratch, long begin, long end)) \
  K(numbers_placed, int, (const void *values, const int64_t *places, void *out, long count, long size))

#endif
