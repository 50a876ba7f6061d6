/* Slices taken and added along a dim, running sums and products along a dim. */
#ifndef SLICES_H
#define SLICES_H

/* An array seen as (outer, size, inner); `index` names `count` of the `size` slices. */
struct slicing {
  long size, inner, count;
  const int64_t *index;
};

/* For outer begin to end. `slices_added` adds to what is there. A scan runs from the end where `reverse`. */
#define SLICES(K) \
  K(slices_taken, void, (const struct slicing *s, const void *from, void *to, long begin, long end)) \
  K(slices_added, void, (const struct slicing *s, const void *from, void *to, long begin, long end)) \
  K(running_sums, void, (const void *x, void *out, long size, long inner, int reverse, long begin, long end)) \
  K(running_products, void, (const void *x, void *out, long size, long inner, int reverse, long begin, long end))

#endif
