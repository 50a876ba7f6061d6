/* Sums, differences, products and quotients of two arrays, one of which may be stretched; sums over dims.

   Declares what the family puts into the table of table.h, for bindings/arithmetic.c; what each expects is said beside it. */
#ifndef ARITHMETIC_H
#define ARITHMETIC_H

/* One operand: where it begins, how far its next row is, and whether a row is one number stretched. */
struct operand {
  const char *at;
  long step;
  int single;
};

#define OF_TWO (const struct operand *a, const struct operand *b, void *out, long rows, long size)

#define ARITHMETIC(K) \
  K(plus, void, OF_TWO) \
  K(minus, void, OF_TWO) \
  K(times, void, OF_TWO) \
  K(over, void, OF_TWO) \
  K(row_totals, void, (const void *x, void *out, long rows, long size)) \
  K(exact_sum, double, (const void *x, long size)) \
  K(column_totals, void, (const void *x, void *out, long rows, long size))

#endif
