/* Products of matrices, and attention.

   Declares what the family puts into the table of table.h, for gemm_driver.c, bindings/matrices.c and bindings/attention.c; what
   each expects is said beside it. */
#ifndef MATRICES_H
#define MATRICES_H

/* C = A · B (+ bias) (+ C). Strides count numbers: A[i, p] is a[i · a_row + p · a_step], B[p, j] is
   b[p · b_step + j · b_column], C and the bias likewise. Either of c_row and c_column is 1. */
struct product {
  const void *a, *b, *bias; /* bias may be NULL */
  void *c;
  long m, n, k;
  long a_row, a_step, b_step, b_column, c_row, c_column, bias_row, bias_column;
  int add;             /* to what C holds */
  const void *panels;  /* B as `pack` leaves it; NULL: it is read where it lies, its columns side by side */
  const void *rest;    /* without panels: the last columns, too few for a panel, packed */
};

/* How a level cuts C: the rows and columns of a tile, the numbers in a vector, and the columns that are taken at once. */
struct tiling {
  long rows, columns, lanes, at_once;
};

/* One head over one text: softmax(q · kᵀ · scale + bias) · v, and the gradients of q, k, v and bias. Each is a matrix
   whose rows are `…_row` numbers apart; `logs` has the logarithm of each row's sum of exp(scores), one for a query;
   `bias` one number for a key, side by side, and its gradient `g_bias` one for a key too; both may be NULL. */
struct attention {
  const void *q, *k, *v, *grad, *bias;
  void *out, *logs, *g_q, *g_k, *g_v, *g_bias;
  long queries, keys, dim;
  long q_row, k_row, v_row, grad_row, out_row, logs_row, g_q_row, g_k_row, g_v_row, g_bias_row;
  double scale;
};

#define MATRICES(K) \
  K(tiling, struct tiling, (void)) \
  K(pack, void, (const struct product *p, void *panels, long first, long end)) \
  K(multiply, void, (const struct product *p, long row, long row_end, long panel, long panel_end)) \
  K(column_sums, void, (const void *x, void *out, long rows, long columns, long width)) \
  K(attend, int, (const struct attention *t)) \
  K(attend_gradient, int, (const struct attention *t)) \
  K(row_dots, void, (const void *a, long row, const void *v, const void *bias, void *out, long begin, long end, long k)) \
  K(row_mix, void, (const void *b, long row, const void *v, const void *bias, void *out, long begin, long end, long k))

#endif
