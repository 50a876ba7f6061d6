/* Slices along a dim. Included by kernels.c.

   Indices that follow each other are a run: their slices lie side by side in both arrays. */

/* How many indices from `at` on follow each other. */
INLINE long run_from(const struct slicing *s, long at) {
  long n = 1;
  while (at + n < s->count && s->index[at + n] == s->index[at] + n) n++;
  return n;
}

static void N(slices_taken)(const struct slicing *s, const void *from_, void *to_, long begin, long end) {
  for (long outer = begin; outer < end; outer++) {
    const real *from = (const real *)from_ + outer * s->size * s->inner;
    real *to = (real *)to_ + outer * s->count * s->inner;
    for (long at = 0, n; at < s->count; at += n) {
      n = run_from(s, at);
      if (n * s->inner == 1)
        to[at] = from[s->index[at]];
      else
        memcpy(to + at * s->inner, from + s->index[at] * s->inner, (size_t)(n * s->inner) * sizeof(real));
    }
  }
}

static void N(slices_added)(const struct slicing *s, const void *from_, void *to_, long begin, long end) {
  for (long outer = begin; outer < end; outer++) {
    const real *from = (const real *)from_ + outer * s->count * s->inner;
    real *to = (real *)to_ + outer * s->size * s->inner;
    for (long at = 0, n; at < s->count; at += n) {
      n = run_from(s, at);
      if (n * s->inner == 1)
        to[s->index[at]] += from[at];
      else
        add_row(to + s->index[at] * s->inner, from + at * s->inner, n * s->inner);
    }
  }
}

/* Each slice is the one before with one operation more: whole vectors where slices are wide. */
#define SCAN(name, OPERATOR) \
  static void N(name)(const void *x_, void *out_, long size, long inner, int reverse, long begin, long end) { \
    for (long outer = begin; outer < end; outer++) { \
      const real *x = (const real *)x_ + outer * size * inner + (reverse ? (size - 1) * inner : 0); \
      real *out = (real *)out_ + (x - (const real *)x_); \
      long step = reverse ? -inner : inner; \
      if (inner == 1) { \
        real total = *x; \
        *out = total; \
        for (long i = 1; i < size; i++) out[i * step] = total = total OPERATOR x[i * step]; \
        continue; \
      } \
      memcpy(out, x, (size_t)inner * sizeof(real)); \
      for (long i = 1; i < size; i++) { \
        const real *before = out; \
        x += step, out += step; \
        long k = 0; \
        for (; k + LANES <= inner; k += LANES) store(out + k, load(before + k) OPERATOR load(x + k)); \
        for (; k < inner; k++) out[k] = before[k] OPERATOR x[k]; \
      } \
    } \
  }
SCAN(running_sums, +)
SCAN(running_products, *)
