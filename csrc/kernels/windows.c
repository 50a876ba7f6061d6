/* Convolution with stride 1, straight from the padded image: no patches are laid out.

   The places of all rows are one long vector. So a product with one element of the kernel reads LANES numbers side by
   side, whatever the width of a row.

   The binding has padded what is read beyond a row by a whole vector. Included by kernels.c; called by bindings/windows.c.
   NOTE [Kernels] in table.h. */

#if VECTOR_BYTES == 64
enum { SLIDE_OUTS = 8 };
#else
enum { SLIDE_OUTS = 4 };
#endif
#define SLIDE_VECTORS 3
#define EACH(i, count) _Pragma("GCC unroll 32") for (int i = 0; i < (count); i++) /* all at once, in registers */
#if VECTOR_BYTES == 64
enum { GRADIENT_OUTS = 4, GRADIENT_TAPS = 6 };
#else
enum { GRADIENT_OUTS = 2, GRADIENT_TAPS = 5 };
#endif

enum { TAPS_OF_ONE = 9, VECTORS_OF_ONE = 4 };

static struct slide_tiles N(slide_tiles)(void) {
  return (struct slide_tiles){SLIDE_OUTS, GRADIENT_OUTS, GRADIENT_TAPS, TAPS_OF_ONE, LANES};
}

/* SLIDE_OUTS outputs at `vectors` · LANES places. */
INLINE void slide_tile(const struct slide *s, const real *x, const real *weight, const real *bias, real *out, long width,
                       const int vectors) {
  vec sum[SLIDE_OUTS][SLIDE_VECTORS];
  EACH(o, SLIDE_OUTS)
    EACH(v, vectors) sum[o][v] = all(bias[o]);
  for (long channel = 0; channel < s->channels; channel++, x += s->plane)
    for (long tap = 0; tap < s->taps; tap++, weight += SLIDE_OUTS) {
      vec met[SLIDE_VECTORS];
      EACH(v, vectors) met[v] = load(x + s->tap[tap] + v * LANES);
      EACH(o, SLIDE_OUTS) {
        vec factor = all(weight[o]);
        EACH(v, vectors) sum[o][v] += factor * met[v];
      }
    }
  EACH(o, SLIDE_OUTS)
    EACH(v, vectors) store(out + o * width + v * LANES, sum[o][v]);
}

/* SLIDE_OUTS outputs at all places; `out` has rows of `places`, rounded up to whole vectors. */
static void N(slide_places)(const struct slide *s, const void *x_, const void *panel, const void *bias, void *out_,
                            long places) {
  const real *x = x_;
  real *out = out_;
  long width = (places + LANES - 1) / LANES * LANES, at = 0;
  for (; at + SLIDE_VECTORS * LANES <= width; at += SLIDE_VECTORS * LANES)
    slide_tile(s, x + at, panel, bias, out + at, width, SLIDE_VECTORS);
  if (at + 2 * LANES == width) slide_tile(s, x + at, panel, bias, out + at, width, 2);
  if (at + LANES == width) slide_tile(s, x + at, panel, bias, out + at, width, 1);
}

INLINE void slide_vectors(const struct slide *s, const real *x, const real *weight, real bias, real *out, const int vectors) {
  vec sum[VECTORS_OF_ONE];
  EACH(v, vectors) sum[v] = all(bias);
  for (long channel = 0; channel < s->channels; channel++, x += s->plane)
    for (long tap = 0; tap < s->taps; tap++) {
      vec factor = all(*weight++);
      EACH(v, vectors) sum[v] += factor * load(x + s->tap[tap] + v * LANES);
    }
  EACH(v, vectors) store(out + v * LANES, sum[v]);
}

/* One output at all places. */
static void N(slide_one)(const struct slide *s, const void *x_, const void *panel, const void *bias, void *out_, long places) {
  const real *x = x_;
  real *out = out_;
  long at = 0;
  for (; at + (VECTORS_OF_ONE - 1) * LANES < places; at += VECTORS_OF_ONE * LANES)
    slide_vectors(s, x + at, panel, *(const real *)bias, out + at, VECTORS_OF_ONE);
  for (; at < places; at += LANES) slide_vectors(s, x + at, panel, *(const real *)bias, out + at, 1);
}

/* total[o, t] += Σ over images and places of grad[o, place] · x[met[t] + place]; `met` and the rows of grad fill tiles. */
INLINE void gradient_tile(const real *x_, long image, const real *grad_, long grad_row, long grad_image, long images,
                          long places, const long *met, real *total, long total_row, long outs, long taps,
                          const int tile_outs, const int tile_taps) {
  vec sum[GRADIENT_OUTS][TAPS_OF_ONE];
  EACH(o, tile_outs)
    EACH(t, tile_taps) sum[o][t] = all(0);
  for (long i = 0; i < images; i++) {
    const real *x = x_ + i * image, *grad = grad_ + i * grad_image;
    for (long at = 0; at < places; at += LANES) {
      vec arrived[GRADIENT_OUTS];
      EACH(o, tile_outs) arrived[o] = load(grad + o * grad_row + at);
      EACH(t, tile_taps) {
        vec seen = load(x + met[t] + at);
        EACH(o, tile_outs) sum[o][t] += arrived[o] * seen;
      }
    }
  }
  EACH(o, tile_outs)
    EACH(t, tile_taps)
      if (o < outs && t < taps) total[o * total_row + t] += sum_of(sum[o][t]);
}

static void N(slide_gradient)(const void *x, long image, const void *grad, long grad_row, long grad_image, long images,
                              long places, const long *met, void *total, long total_row, long outs, long taps) {
  gradient_tile(x, image, grad, grad_row, grad_image, images, places, met, total, total_row, outs, taps, GRADIENT_OUTS,
                GRADIENT_TAPS);
}

static void N(slide_gradient_one)(const void *x, long image, const void *grad, long grad_row, long grad_image, long images,
                                  long places, const long *met, void *total, long total_row, long outs, long taps) {
  gradient_tile(x, image, grad, grad_row, grad_image, images, places, met, total, total_row, outs, taps, 1, TAPS_OF_ONE);
}
