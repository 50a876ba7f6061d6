/* Batch norm of (batch, channels) arrays, whose channels are columns. Included by kernels.c, after channels.c. */

/* The means of columns begin..end, and their sums of squares around them. */
static void N(column_moments)(const void *x_, void *means_, void *spreads_, long begin, long end, long rows, long size) {
  const real *x = x_;
  for (long i = begin; i < end; i += LANES) {
    long n = end - i < LANES ? end - i : LANES, row = 0;
    vec sum = all(0), other = all(0);
    for (; row + 2 <= rows; row += 2) {
      sum += load_some(x + row * size + i, n);
      other += load_some(x + (row + 1) * size + i, n);
    }
    if (row < rows) sum += load_some(x + row * size + i, n);
    vec mean = (sum + other) / (real)rows, spread = all(0);
    for (row = 0; row < rows; row++) {
      vec away = load_some(x + row * size + i, n) - mean;
      spread += away * away;
    }
    store_some((real *)means_ + i, mean, n);
    store_some((real *)spreads_ + i, spread, n);
  }
}

/* Rows begin..end of (x - mean) * inverse * weight + bias. */
static void N(column_scaled)(const void *x_, const void *means_, const void *inverses_, const void *weight_,
                             const void *bias_, void *out_, long begin, long end, long size) {
  const real *x = (const real *)x_ + begin * size, *means = means_, *inverses = inverses_;
  const real *weight = weight_, *bias = bias_;
  real *out = (real *)out_ + begin * size;
  for (long row = begin; row < end; row++, x += size, out += size)
    for (long i = 0; i < size; i += LANES) {
      long n = size - i < LANES ? size - i : LANES;
      vec v = (load_some(x + i, n) - load_some(means + i, n)) * load_some(inverses + i, n);
      if (weight) v = v * load_some(weight + i, n);
      if (bias) v = v + load_some(bias + i, n);
      store_some(out + i, v, n);
    }
}

/* The sums of grad and of grad * (x - mean) in columns begin..end. */
static void N(column_dots)(const void *grad_, const void *x_, const void *means_, void *sums_, void *dots_, long begin,
                           long end, long rows, long size) {
  const real *grad = grad_, *x = x_;
  for (long i = begin; i < end; i += LANES) {
    long n = end - i < LANES ? end - i : LANES;
    vec mean = load_some((const real *)means_ + i, n), sum = all(0), dot = all(0);
    for (long row = 0; row < rows; row++) {
      vec g = load_some(grad + row * size + i, n);
      sum += g;
      dot += g * (load_some(x + row * size + i, n) - mean);
    }
    store_some((real *)sums_ + i, sum, n);
    store_some((real *)dots_ + i, dot, n);
  }
}

/* Rows begin..end of grad * inverse * weight + (x - mean) * slope + shift; without slopes, of the first term alone. */
static void N(column_gradients)(const void *grad_, const void *x_, const void *means_, const void *inverses_,
                                const void *weight_, const void *slopes_, const void *shifts_, void *found_, long begin,
                                long end, long size) {
  const real *grad = (const real *)grad_ + begin * size, *x = (const real *)x_ + begin * size;
  const real *means = means_, *inverses = inverses_, *weight = weight_, *slopes = slopes_, *shifts = shifts_;
  real *found = (real *)found_ + begin * size;
  for (long row = begin; row < end; row++, grad += size, x += size, found += size)
    for (long i = 0; i < size; i += LANES) {
      long n = size - i < LANES ? size - i : LANES;
      vec v = load_some(grad + i, n) * load_some(inverses + i, n);
      if (weight) v = v * load_some(weight + i, n);
      if (slopes) {
        vec away = load_some(x + i, n) - load_some(means + i, n);
        v = v + (away * load_some(slopes + i, n) + load_some(shifts + i, n));
      }
      store_some(found + i, v, n);
    }
}
