/* Layer norm and RMS norm over rows, and the gradients for rows, weight and bias.

   No row is empty. Weight, bias and means may be NULL. Included by kernels.c; called by bindings/norms.c. NOTE [Kernels]
   in table.h. */
#include "simd_rows.h"

INLINE real N(mean_of_row)(const real *x, long size) {
  real total;
#define TERM(i) load(x + (i))
#define LAST(i, n) load_first(x + (i), n, 0)
  SUM_OF_ROW(total, size, TERM, LAST);
#undef TERM
#undef LAST
  return total / (real)size;
}

/* The mean square of what a row differs from `mean`. */
INLINE real N(spread_of_row)(const real *x, real mean, long size) {
  real total;
#define TERM(i) ({ vec d_ = load(x + (i)) - mean; d_ * d_; })
#define LAST(i, n) ({ vec d_ = load_first(x + (i), n, mean) - mean; d_ * d_; })
  SUM_OF_ROW(total, size, TERM, LAST);
#undef TERM
#undef LAST
  return total / (real)size;
}

INLINE real N(inverse_root)(real x) {
#if REAL_BITS == 32
  return 1 / sqrtf(x);
#else
  return 1 / sqrt(x);
#endif
}

/* n numbers at i of (x - mean) * inverse * weight + bias, weight and bias NULL or one number a column. */
INLINE vec N(normal_at)(const real *x, const real *weight, const real *bias, real mean, real inverse, long i, long n) {
  vec v = (load_some(x + i, n) - mean) * inverse;
  if (weight) v = v * load_some(weight + i, n);
  return bias ? v + load_some(bias + i, n) : v;
}

INLINE void N(normal_row)(const real *x, const real *weight, const real *bias, real mean, real inverse, real *out,
                          long size, int streams) {
#define VALUE(i, n) (__builtin_prefetch(x + size + (i)), N(normal_at)(x, weight, bias, mean, inverse, i, n))
  WRITE_ROW(out, size, streams, VALUE);
#undef VALUE
}

/* Rows begin..end of `normalised`; without `means` nothing is taken off (RMS norm). */
static void N(normalised)(const void *x_, const void *weight, const void *bias, double eps, void *out_, void *means_,
                          void *inverses_, long begin, long end, long size, int streams) {
  const real *x = (const real *)x_ + begin * size;
  real *out = (real *)out_ + begin * size, *means = means_, *inverses = inverses_;
  for (long row = begin; row < end; row++, x += size, out += size) {
    real mean = means ? N(mean_of_row)(x, size) : 0;
    real inverse = N(inverse_root)(N(spread_of_row)(x, mean, size) + (real)eps);
    if (means) means[row] = mean;
    inverses[row] = inverse;
    if (weight && bias) N(normal_row)(x, weight, bias, mean, inverse, out, size, streams);
    else if (weight) N(normal_row)(x, weight, NULL, mean, inverse, out, size, streams);
    else N(normal_row)(x, NULL, bias, mean, inverse, out, size, streams);
  }
  if (streams) end_of_stream();
}

/* What one row adds: to `scales` (the weight's gradient) grad * normal, to `shifts` (the bias's) grad; and the sums of
   g = grad * weight and of g * normal, which the row's own gradient needs. */
INLINE void N(row_sums)(const real *grad, const real *x, const real *weight, real mean, real inverse, real *scales,
                        real *shifts, long size, real *sum, real *dot) {
  vec sums = all(0), dots = all(0);
  long i = 0;
  for (; i + LANES <= size; i += LANES) {
    vec g = load(grad + i), n = (load(x + i) - mean) * inverse, both = g * n;
    if (scales) store(scales + i, load(scales + i) + both);
    if (shifts) store(shifts + i, load(shifts + i) + g);
    if (weight) g = g * load(weight + i), both = both * load(weight + i);
    sums += g;
    dots += both;
  }
  if (i < size) {
    long left = size - i;
    vec g = load_first(grad + i, left, 0), n = (load_first(x + i, left, mean) - mean) * inverse, both = g * n;
    if (scales) store_first(scales + i, load_first(scales + i, left, 0) + both, left);
    if (shifts) store_first(shifts + i, load_first(shifts + i, left, 0) + g, left);
    if (weight) {
      vec w = load_first(weight + i, left, 0);
      g = g * w, both = both * w;
    }
    sums += g;
    dots += both;
  }
  *sum = sum_in(sums);
  *dot = sum_in(dots);
}

/* n numbers at i of grad * weight * inverse + (x - mean) * slope + shift */
INLINE vec N(gradient_at)(const real *grad, const real *x, const real *weight, real mean, real inverse, real slope,
                          real shift, long i, long n) {
  vec g = load_some(grad + i, n) * inverse;
  if (weight) g = g * load_some(weight + i, n);
  return g + ((load_some(x + i, n) - mean) * slope + shift);
}

INLINE void N(gradient_row)(const real *grad, const real *x, const real *weight, real mean, real inverse, real slope,
                            real shift, real *found, long size, int streams) {
#define VALUE(i, n) \
  (__builtin_prefetch(grad + size + (i)), __builtin_prefetch(x + size + (i)), \
   N(gradient_at)(grad, x, weight, mean, inverse, slope, shift, i, n))
  WRITE_ROW(found, size, streams, VALUE);
#undef VALUE
}

/* Rows begin..end of `normalised_gradients`. What is NULL is not wanted: found, scales, shifts (which are added to). */
static void N(normalised_gradients)(const void *grad_, const void *x_, const void *means_, const void *inverses_,
                                    const void *weight, void *found_, void *scales, void *shifts, long begin, long end,
                                    long size, int streams) {
  const real *grad = (const real *)grad_ + begin * size, *x = (const real *)x_ + begin * size;
  const real *means = means_, *inverses = inverses_;
  real *found = found_ ? (real *)found_ + begin * size : NULL, sum, dot;
  for (long row = begin; row < end; row++, grad += size, x += size) {
    real mean = means ? means[row] : 0, inverse = inverses[row];
    if (weight && scales && shifts) N(row_sums)(grad, x, weight, mean, inverse, scales, shifts, size, &sum, &dot);
    else if (weight && !scales && !shifts) N(row_sums)(grad, x, weight, mean, inverse, NULL, NULL, size, &sum, &dot);
    else N(row_sums)(grad, x, weight, mean, inverse, scales, shifts, size, &sum, &dot);
    if (!found) continue;
    real slope = -inverse * inverse * dot / (real)size, shift = means ? -inverse * sum / (real)size : 0;
    if (weight) N(gradient_row)(grad, x, weight, mean, inverse, slope, shift, found, size, streams);
    else N(gradient_row)(grad, x, NULL, mean, inverse, slope, shift, found, size, streams);
    found += size;
  }
  if (streams) end_of_stream();
}

/* Add to columns begin..end of `total` those of `parts` matrices' rows of `size` numbers. */
static void N(add_parts)(const void *parts_, void *total_, long parts, long size, long begin, long end) {
  real *total = total_;
  for (long part = 0; part < parts; part++) {
    const real *row = (const real *)parts_ + part * size;
    for (long i = begin; i < end; i++) total[i] = part ? total[i] + row[i] : row[i];
  }
}
