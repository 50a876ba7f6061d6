/* Random bits, and the numbers made of them.

   Declares what the family puts into the table of table.h, for bindings/random_numbers.c, which checks states and counts; what each
   expects is said beside it. */
#ifndef RANDOM_NUMBERS_H
#define RANDOM_NUMBERS_H

#define TWISTER_WORDS 624 /* then the place of the next word, up to 624 */

/* `state` is TWISTER_WORDS + 1 words; `limit` is a probability times 2^53, rounded up. random_normals writes 16 numbers or more. */
#define RANDOM_NUMBERS(K) \
  K(random_words, void, (uint32_t *state, uint64_t *out, long size)) \
  K(random_units, void, (uint32_t *state, void *out, long size)) \
  K(random_choices, void, (uint32_t *state, uint64_t limit, unsigned char *out, long size)) \
  K(random_noise, void, (uint32_t *state, uint64_t limit, double value, void *out, long size)) \
  K(random_normals, void, (uint32_t *state, double mean, double std, void *out, long size)) \
  K(random_integers, void, (uint32_t *state, uint64_t low, uint64_t length, uint64_t *out, long size)) \
  K(random_order, void, (uint32_t *state, int64_t *out, long last)) \
  K(random_poisson, void, (uint32_t *state, const double *rates, int64_t *out, long size)) \
  K(random_gammas, void, \
    (uint32_t *state, double *spare, const double *powers, const double *d, const double *c, double *out, long size)) \
  K(random_binomials, void, (uint32_t *state, const double *counts, const double *probabilities, double *out, long size))

#endif
