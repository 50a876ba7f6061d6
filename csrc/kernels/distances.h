/* Distances between all pairs of points.

   Declares what the family puts into the table of table.h, for bindings/distances.c; what each expects is said beside it. */
#ifndef DISTANCES_H
#define DISTANCES_H

/* `turned` is the second points with dims as rows; p is 1 or 2. */
#define DISTANCES(K) \
  K(distances, void, (const void *x1, const void *turned, void *out, long begin, long end, long rows, long others, \
                      long dims, int p)) \
  K(distance_gradients, void, (const void *grad, const void *x1, const void *x2, const void *out, void *gradient1, \
                            void *gradient2, long begin, long end, long rows, long others, long dims, int p))

#endif
