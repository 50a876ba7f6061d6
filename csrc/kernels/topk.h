/* The first of each row in order.

   Declares what the family puts into the table of table.h, for bindings/topk.c; what each expects is said beside it. */
#ifndef TOPK_H
#define TOPK_H

#define MOST_OF_TOPK 128 /* they are kept in order by inserting; for more, sorting is faster */

#define TOPK(K) \
  K(top_places, void, (const void *x, int64_t *places, long begin, long end, long size, long count, int largest))

#endif
