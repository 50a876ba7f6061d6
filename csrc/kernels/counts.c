/* Whole numbers at random: from a range, all of a range in random order, of the Poisson distribution.

   Ranges are not empty, and rates lie in [0, 2^62]: beyond that, drawing would not end. Included by kernels.c, after
   random_numbers.c; called by bindings/random_numbers.c. NOTE [Kernels] in table.h. */

/* `low` and above, below `low + length`: a draw's rest, of one word where the length is below 2^28. */
static void N(random_integers)(uint32_t *state, uint64_t low, uint64_t length, uint64_t *out, long size) {
  uint32_t drawn[DRAWN_AT_ONCE];
  const long words_of_one = length < (1 << 28) ? 1 : 2;
  for (long count; size; size -= count, out += count) {
    count = size < DRAWN_AT_ONCE / words_of_one ? size : DRAWN_AT_ONCE / words_of_one;
    next_words(state, drawn, count * words_of_one);
    if (words_of_one == 1)
      for (long i = 0; i < count; i++) out[i] = low + drawn[i] % (uint32_t)length;
    else
      for (long i = 0; i < count; i++) out[i] = low + ((uint64_t)drawn[2 * i] << 32 | drawn[2 * i + 1]) % length;
  }
}

/* The numbers up to `last`, each but it swapped with one of those that follow. */
static void N(random_order)(uint32_t *state, int64_t *out, long last) {
  uint32_t drawn[DRAWN_AT_ONCE];
  for (long i = 0; i <= last; i++) out[i] = i;
  for (long at = 0, count; at < last; at += count) {
    count = last - at < DRAWN_AT_ONCE ? last - at : DRAWN_AT_ONCE;
    next_words(state, drawn, count);
    for (long i = at; i < at + count; i++) {
      long other = i + (long)(drawn[i - at] % (uint64_t)(last + 1 - i));
      int64_t kept = out[i];
      out[i] = out[other], out[other] = kept;
    }
  }
}

static double next_unit(uint32_t *state) {
  uint32_t drawn[2];
  next_words(state, drawn, 2);
  return (double)(int64_t)wide_bits(drawn, 0) * 0x1p-53;
}

/* Multiply uniform numbers until their product is below exp(-rate). */
static int64_t small_poisson(uint32_t *state, double rate) {
  double limit = exp(-rate), product = 1;
  for (int64_t count = 0;; count++) {
    product *= next_unit(state);
    if (product <= limit) return count;
  }
}

/* Transformed rejection; see kernels/random/distributions.py. */
static int64_t large_poisson(uint32_t *state, double rate) {
  double log_rate = log(rate), b = 0.931 + 2.53 * sqrt(rate), a = -0.059 + 0.02483 * b;
  double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4), accepted = 0.9277 - 3.6224 / (b - 2);
  for (;;) {
    double u = next_unit(state) - 0.5, second = next_unit(state), distance = 0.5 - fabs(u);
    double count = distance ? floor((2 * a / distance + b) * u + rate + 0.43) : -1;
    if (distance >= 0.07 && second <= accepted) return (int64_t)count;
    if (count < 0 || (distance < 0.013 && second > distance)) continue;
    double bound = -rate + count * log_rate - lgamma(count + 1);
    double density = second * inverse_alpha / (a / (distance * distance) + b);
    if (density <= 0 || log(density) <= bound) return (int64_t)count;
  }
}

static void N(random_poisson)(uint32_t *state, const double *rates, int64_t *out, long size) {
  for (long i = 0; i < size; i++) {
    const double rate = rates[i];
    if (!(rate > 0 && rate <= 0x1p62)) out[i] = 0; /* 0, or written since it was checked: NOTE [Arrays that change] */
    else out[i] = rate >= 10 ? large_poisson(state, rate) : small_poisson(state, rate);
  }
}
