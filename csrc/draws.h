/* Random bits, and the numbers made of them. */
#ifndef DRAWS_H
#define DRAWS_H

#define TWISTER_WORDS 624 /* then the place of the next word, up to 624 */

/* `state` is TWISTER_WORDS + 1 words; `limit` is a probability times 2^53, rounded up. */
#define DRAWS(K) \
  K(random_words, void, (uint32_t *state, uint64_t *out, long size)) \
  K(random_units, void, (uint32_t *state, void *out, long size)) \
  K(random_choices, void, (uint32_t *state, uint64_t limit, unsigned char *out, long size)) \
  K(random_noise, void, (uint32_t *state, uint64_t limit, double value, void *out, long size))

#endif
