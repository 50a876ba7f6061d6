/* Slices taken and added along a dim, running sums and products along a dim.

   Declares what the family puts into the table of table.h, for bindings/slices.c, which checks indices; what each expects
   is said beside it. */
#ifndef SLICES_H
#define SLICES_H

/* An array seen as (outer, size, inner), `count` of whose `size` slices are named. Indices that follow each other are a
   run, whose slices lie side by side in both arrays. */
struct slicing {
  long size, inner, count, runs;
  const struct run_of_slices {
    long first, length;
  } *run;
};

/* For outer begin to end. `slices_added` adds to what is there. A scan runs from the end where `reverse`.
   `triangles_kept` keeps of each row the columns up to its own plus `offset`, or where `upper` from there on. */
#define SLICES(K) \
  K(slices_taken, void, (const struct slicing *s, const void *from, void *to, long begin, long end)) \
  K(slices_added, void, (const struct slicing *s, const void *from, void *to, long begin, long end)) \
  K(slices_turned, void, (const void *from, void *to, long size, long inner, long begin, long end)) \
  K(triangles_kept, void, (const void *x, void *out, long rows, long columns, long offset, int upper, long begin, long end)) \
  K(running_extremes, void, (const void *x, void *out, int64_t *places, long size, long inner, int largest, long begin, \
                             long end)) \
  K(running_sums, void, (const void *x, void *out, long size, long inner, int reverse, long begin, long end)) \
  K(running_products, void, (const void *x, void *out, long size, long inner, int reverse, long begin, long end))

#endif
