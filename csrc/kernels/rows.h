/* Row by row: softmax, normalisation, losses; channels; rows that share an index.

   Declares what the family puts into the table of table.h, for bindings/rows.c, bindings/norms.c, bindings/losses.c,
   bindings/channels.c and bindings/groups.c; what each expects is said beside it. */
#ifndef ROWS_H
#define ROWS_H

#define STREAMED (8L << 20) /* bytes; larger results are written past the caches, smaller ones are soon read there */

#define ROWS(K) ROWS_ALONE(K) CHANNELS(K) GROUPS(K)

#define ROWS_ALONE(K) \
  K(softmax, void, (const void *x, void *out, long rows, long size)) \
  K(log_softmax, void, (const void *x, void *out, long rows, long size)) \
  K(softmax_gradient, void, (const void *grad, const void *out, void *found, long rows, long size)) \
  K(log_softmax_gradient, void, (const void *grad, const void *out, void *found, long rows, long size)) \
  K(normalised, void, (const void *x, const void *weight, const void *bias, double eps, void *out, void *means, \
                       void *inverses, long begin, long end, long size, int streams)) \
  K(normalised_gradients, void, (const void *grad, const void *x, const void *means, const void *inverses, \
                                 const void *weight, void *found, void *scales, void *shifts, long begin, long end, \
                                 long size, int streams)) \
  K(add_parts, void, (const void *parts, void *total, long count, long size, long begin, long end)) \
  K(class_losses, void, (const void *x, const void *targets, const void *weight, long ignored, double smoothing, \
                         void *losses, void *sums, void *factors, long begin, long end, long size)) \
  K(mean_loss, double, (const void *losses, void *factors, const void *targets, const void *weight, int mean, long rows)) \
  K(class_gradients, void, (const void *grads, long step, const void *x, const void *targets, const void *weight, \
                         double total_weight, const void *sums, const void *factors, double smoothing, void *found, \
                         long begin, long end, long size, int streams))

#define CHANNELS(K) \
  K(plane_moments, void, (const void *x, void *means, void *spreads, long begin, long end, long size)) \
  K(unit_moments, void, (const void *plane_means, const void *plane_spreads, double eps, void *means, void *variances, \
                         void *inverses, long units, long step, long members, long channels, long size)) \
  K(plane_scaled, void, (const void *x, const void *means, const void *inverses, const void *weight, const void *bias, \
                         void *out, long begin, long end, long size, long channels, long share, int streams)) \
  K(plane_dots, void, (const void *grad, const void *x, const void *means, void *sums, void *dots, long begin, long end, \
                       long size, long channels, long share)) \
  K(unit_gradients, void, (const void *sums, const void *dots, const void *inverses, const void *weight, void *scales, \
                           void *shares, void *slopes, void *shifts, long planes, long channels, long share, long units, \
                           long numbers)) \
  K(plane_gradients, void, (const void *grad, const void *x, const void *means, const void *inverses, const void *weight, \
                            const void *slopes, const void *shifts, void *found, long begin, long end, long size, \
                            long channels, long share, int streams)) \
  K(column_moments, void, (const void *x, void *means, void *spreads, long begin, long end, long rows, long size)) \
  K(column_scaled, void, (const void *x, const void *means, const void *inverses, const void *weight, const void *bias, \
                          void *out, long begin, long end, long size)) \
  K(column_dots, void, (const void *grad, const void *x, const void *means, void *sums, void *dots, long begin, long end, \
                        long rows, long size)) \
  K(column_gradients, void, (const void *grad, const void *x, const void *means, const void *inverses, \
                             const void *weight, const void *slopes, const void *shifts, void *found, long begin, \
                             long end, long size))

#define GROUPS(K) \
  K(sums_by_index, void, (const void *rows, const void *index, void *total, long groups, long count, long size, long begin, \
                           long end))

#endif
