/* Weighted sums of elements of planes.

   Declares what the family puts into the table of table.h, for bindings/grid_samples.c; what each expects is said beside it. */
#ifndef GRID_SAMPLES_H
#define GRID_SAMPLES_H

/* `weights` and `places` are (taps, batch, samples); planes begin to end, of all batches. */
#define GRID_SAMPLES(K) \
  K(weighted_samples, void, (const void *planes, const void *weights, const int64_t *places, void *out, \
                             long begin, long end, long batch, long channels, long positions, long samples, long taps)) \
  K(scatter_samples, void, (const void *grad, const void *weights, const int64_t *places, void *planes, \
                            long begin, long end, long batch, long channels, long positions, long samples, long taps)) \
  K(sample_weight_dots, void, (const void *grad, const void *planes, const int64_t *places, void *dots, \
                               long begin, long end, long batch, long channels, long positions, long samples, long taps))

#endif
