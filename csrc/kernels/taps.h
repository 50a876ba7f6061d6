/* Elements of planes, met at given places with given weights.

   Declares what the family puts into the table of table.h, for bindings/taps.c; what each expects is said beside it. */
#ifndef TAPS_H
#define TAPS_H

/* `weights` and `places` are (taps, batch, samples); planes begin to end, of all batches. */
#define TAPS(K) \
  K(taps_taken, void, (const void *planes, const void *weights, const int64_t *places, void *out, long begin, long end, \
                       long batch, long channels, long positions, long samples, long taps)) \
  K(taps_added, void, (const void *grad, const void *weights, const int64_t *places, void *planes, long begin, long end, \
                       long batch, long channels, long positions, long samples, long taps)) \
  K(taps_dotted, void, (const void *grad, const void *planes, const int64_t *places, void *dots, long begin, long end, \
                        long batch, long channels, long positions, long samples, long taps))

#endif
