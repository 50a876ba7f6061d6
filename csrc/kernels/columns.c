/* Batch norm of (batch, channels) arrays, whose channels are columns.

   Neither size is 0. Included by kernels.c, after channels.c; called by bindings/channels.c. NOTE [Kernels] in table.h. */

/* The means of WIDE vectors of columns (or of n numbers of a single one), and their sums of squares around them. */
#define WIDE 4
INLINE void N(moments_of_columns)(const real *x, real *means, real *spreads, long rows, long size, int wide, long n) {
  vec sum[WIDE], mean[WIDE], spread[WIDE];
  for (int k = 0; k < wide; k++) sum[k] = spread[k] = all(0);
  for (long row = 0; row < rows; row++)
    for (int k = 0; k < wide; k++) sum[k] += load_some(x + row * size + k * LANES, n);
  for (int k = 0; k < wide; k++) mean[k] = sum[k] / (real)rows;
  for (long row = 0; row < rows; row++)
    for (int k = 0; k < wide; k++) {
      vec away = load_some(x + row * size + k * LANES, n) - mean[k];
      spread[k] += away * away;
    }
  for (int k = 0; k < wide; k++) {
    store_some(means + k * LANES, mean[k], n);
    store_some(spreads + k * LANES, spread[k], n);
  }
}

/* The means of columns begin..end, and their sums of squares around them. */
static void N(column_moments)(const void *x_, void *means_, void *spreads_, long begin, long end, long rows, long size) {
  const real *x = x_;
  real *means = means_, *spreads = spreads_;
  long i = begin;
  for (; i + WIDE * LANES <= end; i += WIDE * LANES)
    N(moments_of_columns)(x + i, means + i, spreads + i, rows, size, WIDE, LANES);
  for (; i < end; i += LANES)
    N(moments_of_columns)(x + i, means + i, spreads + i, rows, size, 1, end - i < LANES ? end - i : LANES);
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

/* The sums of grad and of grad * (x - mean) in WIDE vectors of columns, or in n numbers of a single one. */
INLINE void N(dots_of_columns)(const real *grad, const real *x, const real *means, real *sums, real *dots, long rows,
                               long size, int wide, long n) {
  vec mean[WIDE], sum[WIDE], dot[WIDE];
  for (int k = 0; k < wide; k++) mean[k] = load_some(means + k * LANES, n), sum[k] = dot[k] = all(0);
  for (long row = 0; row < rows; row++)
    for (int k = 0; k < wide; k++) {
      long at = row * size + k * LANES;
      vec g = load_some(grad + at, n);
      sum[k] += g;
      dot[k] += g * (load_some(x + at, n) - mean[k]);
    }
  for (int k = 0; k < wide; k++) {
    store_some(sums + k * LANES, sum[k], n);
    store_some(dots + k * LANES, dot[k], n);
  }
}

/* The sums of grad and of grad * (x - mean) in columns begin..end. */
static void N(column_dots)(const void *grad_, const void *x_, const void *means_, void *sums_, void *dots_, long begin,
                           long end, long rows, long size) {
  const real *grad = grad_, *x = x_, *means = means_;
  real *sums = sums_, *dots = dots_;
  long i = begin;
  for (; i + WIDE * LANES <= end; i += WIDE * LANES)
    N(dots_of_columns)(grad + i, x + i, means + i, sums + i, dots + i, rows, size, WIDE, LANES);
  for (; i < end; i += LANES) {
    long n = end - i < LANES ? end - i : LANES;
    N(dots_of_columns)(grad + i, x + i, means + i, sums + i, dots + i, rows, size, 1, n);
  }
}
#undef WIDE

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
