/* Interpolation: weighted sums of elements of planes. Each output sample has some "taps": the position of an element and
   its weight. A position outside of the plane, such as -1, reads as 0 and gets no gradient.

     weighted_samples     out[sample] = Σ over taps of weight · plane[position]
     scatter_samples      the gradient of the planes: grad[sample] · weight is added at each position
     sample_weight_dots   the gradient of the weights: Σ over channels of grad[sample] · plane[position]

   Another thread may write to the positions meanwhile, so each is read once and checked: NOTE [Arrays that change] in
   bindings/bindings.h. Included by kernels.c; called by bindings/grid_samples.c. NOTE [Kernels] in table.h. */

static inline int N(is_inside)(int64_t place, long positions) { return (uint64_t)place < (uint64_t)positions; }
static inline real N(element_at)(const real *from, int64_t place, long positions) {
  return N(is_inside)(place, positions) ? from[place] : 0;
}

static void N(weighted_samples)(const void *planes, const void *weights, const int64_t *places, void *out_,
                                long begin, long end, long batch, long channels, long positions, long samples, long taps) {
  for (long plane = begin; plane < end; plane++) {
    const real *from = (const real *)planes + plane * positions;
    real *out = (real *)out_ + plane * samples;
    for (long tap = 0; tap < taps; tap++) {
      long at = (tap * batch + plane / channels) * samples;
      const real *weight = (const real *)weights + at;
      const int64_t *place = places + at;
      if (tap)
        for (long i = 0; i < samples; i++) out[i] += N(element_at)(from, read_once(place + i), positions) * weight[i];
      else
        for (long i = 0; i < samples; i++) out[i] = N(element_at)(from, read_once(place + i), positions) * weight[i];
    }
  }
}

/* Where each sample's gradient goes; `planes` holds what it is added to. */
static void N(scatter_samples)(const void *grad_, const void *weights, const int64_t *places, void *planes,
                               long begin, long end, long batch, long channels, long positions, long samples, long taps) {
  for (long plane = begin; plane < end; plane++) {
    const real *grad = (const real *)grad_ + plane * samples;
    real *to = (real *)planes + plane * positions;
    for (long tap = 0; tap < taps; tap++) {
      long at = (tap * batch + plane / channels) * samples;
      const real *weight = (const real *)weights + at;
      const int64_t *place = places + at;
      for (long i = 0; i < samples; i++) {
        const int64_t at_plane = read_once(place + i);
        if (N(is_inside)(at_plane, positions)) to[at_plane] += grad[i] * weight[i];
      }
    }
  }
}

/* For each tap, the sum over channels of gradient times element; batches begin to end. */
static void N(sample_weight_dots)(const void *grad_, const void *planes, const int64_t *places, void *dots_,
                                  long begin, long end, long batch, long channels, long positions, long samples, long taps) {
  for (long image = begin; image < end; image++)
    for (long tap = 0; tap < taps; tap++) {
      long at = (tap * batch + image) * samples;
      const int64_t *place = places + at;
      real *dots = (real *)dots_ + at;
      for (long i = 0; i < samples; i++) dots[i] = 0;
      for (long plane = image * channels; plane < (image + 1) * channels; plane++) {
        const real *grad = (const real *)grad_ + plane * samples, *from = (const real *)planes + plane * positions;
        for (long i = 0; i < samples; i++) dots[i] += grad[i] * N(element_at)(from, read_once(place + i), positions);
      }
    }
}
