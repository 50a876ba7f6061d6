/* Row by row: softmax, normalisation, losses. */
#ifndef ROWS_H
#define ROWS_H

#define ROWS(K) \
  K(softmax, void, (const void *x, void *out, long rows, long size)) \
  K(softmax_gradient, void, (const void *grad, const void *out, void *found, long rows, long size))

#endif
