/* Slices along a dim.

   The runs of an index were read once and checked by the binding. Included by kernels.c; called by bindings/slices.c. NOTE
   [Kernels] in table.h. */

static void N(slices_taken)(const struct slicing *s, const void *from_, void *to_, long begin, long end) {
  for (long outer = begin; outer < end; outer++) {
    const real *from = (const real *)from_ + outer * s->size * s->inner;
    real *to = (real *)to_ + outer * s->count * s->inner;
    for (long at = 0, run = 0, n; run < s->runs; run++, at += n) {
      n = s->run[run].length;
      if (n * s->inner == 1)
        to[at] = from[s->run[run].first];
      else
        memcpy(to + at * s->inner, from + s->run[run].first * s->inner, (size_t)(n * s->inner) * sizeof(real));
    }
  }
}

static void N(slices_added)(const struct slicing *s, const void *from_, void *to_, long begin, long end) {
  for (long outer = begin; outer < end; outer++) {
    const real *from = (const real *)from_ + outer * s->count * s->inner;
    real *to = (real *)to_ + outer * s->size * s->inner;
    for (long at = 0, run = 0, n; run < s->runs; run++, at += n) {
      n = s->run[run].length;
      if (n * s->inner == 1)
        to[s->run[run].first] += from[at];
      else
        add_row(to + s->run[run].first * s->inner, from + at * s->inner, n * s->inner);
    }
  }
}

static void N(slices_turned)(const void *from_, void *to_, long size, long inner, long begin, long end) {
  for (long outer = begin; outer < end; outer++) {
    const real *from = (const real *)from_ + (outer + 1) * size * inner - inner;
    real *to = (real *)to_ + outer * size * inner;
    if (inner == 1)
      for (long i = 0; i < size; i++) to[i] = from[-i];
    else
      for (long i = 0; i < size; i++) memcpy(to + i * inner, from - i * inner, (size_t)inner * sizeof(real));
  }
}

static void N(triangles_kept)(const void *x_, void *out_, long rows, long columns, long offset, int upper, long begin,
                              long end) {
  for (long line = begin; line < end; line++) {
    const real *x = (const real *)x_ + line * columns;
    real *out = (real *)out_ + line * columns;
    long edge = line % rows + offset + !upper; /* columns left of it, right of it */
    edge = edge < 0 ? 0 : edge > columns ? columns : edge;
    long first = upper ? edge : 0, last = upper ? columns : edge;
    memset(out, 0, (size_t)first * sizeof(real));
    memcpy(out + first, x + first, (size_t)(last - first) * sizeof(real));
    memset(out + last, 0, (size_t)(columns - last) * sizeof(real));
  }
}

/* The latest among equals; the latest NaN, once one was met. */
static void N(running_extremes)(const void *x_, void *out_, int64_t *places_, long size, long inner, int largest, long begin,
                                long end) {
  for (long outer = begin; outer < end; outer++) {
    const real *x = (const real *)x_ + outer * size * inner;
    real *out = (real *)out_ + outer * size * inner;
    int64_t *places = places_ + outer * size * inner;
    for (long k = 0; k < inner; k++) out[k] = x[k], places[k] = 0;
    for (long i = inner, at = 1, left = inner; i < size * inner; i++) {
      real before = out[i - inner], new = x[i];
      int better = (new != new) | ((before == before) & (largest ? new >= before : new <= before));
      out[i] = better ? new : before;
      places[i] = better ? at : places[i - inner];
      if (!--left) at++, left = inner;
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
