/* What there is to say of many numbers in one pass; see summaries.c.

   Declares what the family puts into the table of table.h, for bindings/summaries.c and core/nonfinite.c; what each expects is
   said beside it. */
#ifndef SUMMARIES_H
#define SUMMARIES_H

struct part_summary {
  double least, most, sum, square; /* over finite numbers; least > most if there are none */
  long nans, infs, zeros;
};

/* What is odd among numbers, as bits. */
enum { FOUND_INF = 1, FOUND_NAN = 2 };

#define SUMMARIES(K) \
  K(summary_of, void, (const void *numbers, long count, struct part_summary *found)) \
  K(nonfinite_among, int, (const void *numbers, long count))

#endif
