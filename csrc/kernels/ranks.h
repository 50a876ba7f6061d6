/* The first of each row in order.

   Declares what the family puts into the table of table.h, for bindings/ranks.c; what each expects is said beside it. */
#ifndef RANKS_H
#define RANKS_H

#define MOST_RANKS 128 /* they are kept in order by inserting; for more, sorting is faster */

#define RANKS(K) \
  K(top_places, void, (const void *x, int64_t *places, long begin, long end, long size, long count, int largest))

#endif
