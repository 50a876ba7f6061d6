/* Batch norm and group norm of (batch, channels, size) arrays.

   A plane is the `size` numbers of one channel of one example. Planes that are normalised together make a unit: those
   of one channel (`share` 0), or `share` neighbouring ones, a group of channels.

   No size is 0. Included by kernels.c, after norms.c; called by bindings/channels.c. NOTE [Kernels] in table.h. */

INLINE long N(unit_of)(long plane, long channels, long share) { return share ? plane / share : plane % channels; }

/* The mean of each plane, and its sum of squares around that. */
static void N(plane_moments)(const void *x_, void *means_, void *spreads_, long begin, long end, long size) {
  const real *x = (const real *)x_ + begin * size;
  real *means = means_, *spreads = spreads_;
  for (long plane = begin; plane < end; plane++, x += size) {
    means[plane] = N(mean_of_row)(x, size);
    spreads[plane] = N(spread_of_row)(x, means[plane], size) * (real)size;
  }
}

/* From those of planes, the mean, variance and 1 / sqrt(variance + eps) of units. */
static void N(unit_moments)(const void *plane_means, const void *plane_spreads, double eps, void *means_, void *variances_,
                            void *inverses_, long units, long step, long members, long channels, long size) {
  const real *of_planes = plane_means, *spreads = plane_spreads;
  real *means = means_, *variances = variances_, *inverses = inverses_;
  for (long unit = 0; unit < units; unit++) {
    long first = step == 1 ? unit * members : unit % channels;
    double mean = 0, spread = 0;
    for (long i = 0; i < members; i++) mean += of_planes[first + i * step];
    mean /= (double)members;
    for (long i = 0; i < members; i++) {
      double away = of_planes[first + i * step] - mean;
      spread += spreads[first + i * step] + away * away * (double)size;
    }
    spread /= (double)members * (double)size;
    means[unit] = (real)mean, variances[unit] = (real)spread, inverses[unit] = (real)(1 / sqrt(spread + eps));
  }
}

/* Planes of (x - mean) * inverse * weight + bias. */
static void N(plane_scaled)(const void *x_, const void *means_, const void *inverses_, const void *weight_,
                            const void *bias_, void *out_, long begin, long end, long size, long channels, long share,
                            int streams) {
  const real *x = (const real *)x_ + begin * size, *means = means_, *inverses = inverses_;
  const real *weight = weight_, *bias = bias_;
  real *out = (real *)out_ + begin * size;
  for (long plane = begin; plane < end; plane++, x += size, out += size) {
    long channel = plane % channels, unit = N(unit_of)(plane, channels, share);
    real mean = means[unit], scale = weight ? inverses[unit] * weight[channel] : inverses[unit];
    real shift = bias ? bias[channel] : 0;
#define VALUE(i, n) ((load_some(x + (i), n) - mean) * scale + shift)
    WRITE_ROW(out, size, streams, VALUE);
#undef VALUE
  }
  if (streams) end_of_stream();
}

/* For each plane, the sum of grad and that of grad * (x - mean). */
static void N(plane_dots)(const void *grad_, const void *x_, const void *means_, void *sums_, void *dots_, long begin,
                          long end, long size, long channels, long share) {
  const real *grad = (const real *)grad_ + begin * size, *x = (const real *)x_ + begin * size, *means = means_;
  real *sums = sums_, *dots = dots_;
  for (long plane = begin; plane < end; plane++, grad += size, x += size) {
    real mean = means[N(unit_of)(plane, channels, share)];
    vec s = all(0), d = all(0), t = all(0), e = all(0);
    long i = 0;
    for (; i + 2 * LANES <= size; i += 2 * LANES) {
      vec g = load(grad + i), h = load(grad + i + LANES);
      s += g;
      t += h;
      d += g * (load(x + i) - mean);
      e += h * (load(x + i + LANES) - mean);
    }
    for (; i < size; i += LANES) {
      long n = size - i < LANES ? size - i : LANES;
      vec g = n < LANES ? load_first(grad + i, n, 0) : load(grad + i);
      s += g;
      d += g * ((n < LANES ? load_first(x + i, n, mean) : load(x + i)) - mean);
    }
    sums[plane] = sum_in(s + t);
    dots[plane] = sum_in(d + e);
  }
}

/* From the sums of planes the gradients of weight and bias (NULL: not wanted), and what each unit adds to its planes'
   gradients: slope * (x - mean) + shift (NULL: statistics that do not depend on x). */
static void N(unit_gradients)(const void *sums_, const void *dots_, const void *inverses_, const void *weight_, void *scales_,
                              void *shares_, void *slopes_, void *shifts_, long planes, long channels, long share,
                              long units, long numbers) {
  const real *sums = sums_, *dots = dots_, *inverses = inverses_, *weight = weight_;
  real *scales = scales_, *shares = shares_, *slopes = slopes_, *shifts = shifts_;
  for (long channel = 0; channel < channels; channel++) {
    double scale = 0, sum = 0;
    for (long plane = channel; plane < planes; plane += channels) {
      scale += (double)dots[plane] * inverses[N(unit_of)(plane, channels, share)];
      sum += sums[plane];
    }
    if (scales) scales[channel] = (real)scale;
    if (shares) shares[channel] = (real)sum;
  }
  if (!slopes) return;
  long members = planes / units, step = share ? 1 : channels;
  for (long unit = 0; unit < units; unit++) {
    double sum = 0, dot = 0, inverse = inverses[unit];
    for (long i = 0; i < members; i++) {
      long plane = (share ? unit * share : unit) + i * step;
      double factor = weight ? weight[plane % channels] : 1;
      sum += factor * sums[plane];
      dot += factor * dots[plane];
    }
    slopes[unit] = (real)(-inverse * inverse * inverse * dot / (double)numbers);
    shifts[unit] = (real)(-inverse * sum / (double)numbers);
  }
}

/* Planes of grad * inverse * weight + (x - mean) * slope + shift; without slopes, of the first term alone. */
static void N(plane_gradients)(const void *grad_, const void *x_, const void *means_, const void *inverses_,
                               const void *weight_, const void *slopes_, const void *shifts_, void *found_, long begin,
                               long end, long size, long channels, long share, int streams) {
  const real *grad = (const real *)grad_ + begin * size, *x = (const real *)x_ + begin * size;
  const real *means = means_, *inverses = inverses_, *weight = weight_, *slopes = slopes_, *shifts = shifts_;
  real *found = (real *)found_ + begin * size;
  for (long plane = begin; plane < end; plane++, grad += size, x += size, found += size) {
    long channel = plane % channels, unit = N(unit_of)(plane, channels, share);
    real scale = weight ? inverses[unit] * weight[channel] : inverses[unit];
#define FIXED(i, n) (load_some(grad + (i), n) * scale)
#define VALUE(i, n) (FIXED(i, n) + ((load_some(x + (i), n) - mean) * slope + shift))
    if (slopes) {
      real mean = means[unit], slope = slopes[unit], shift = shifts[unit];
      WRITE_ROW(found, size, streams, VALUE);
    } else {
      WRITE_ROW(found, size, streams, FIXED);
    }
#undef FIXED
#undef VALUE
  }
  if (streams) end_of_stream();
}
