/* Row by row: softmax, its logarithm, and their gradients.

   No row is empty. Included by kernels.c; called by bindings/rows.c. NOTE [Kernels] in table.h. */
#include "simd_rows.h"

/* The largest number of a row; -inf for a row of NaN. */
INLINE real N(top_of_row)(const real *x, long size) {
  vec a = all((real)-INFINITY), b = a;
  long i = 0;
  for (; i + 2 * LANES <= size; i += 2 * LANES) {
    a = larger(load(x + i), a);
    b = larger(load(x + i + LANES), b);
  }
  for (; i + LANES <= size; i += LANES) a = larger(load(x + i), a);
  if (i < size) b = larger(load_first(x + i, size - i, (real)-INFINITY), b);
  return largest_in(larger(a, b));
}

/* Write exp(x - shift) and return the sum. */
INLINE real N(exponentials_of_row)(const real *x, real *out, real shift, long size) {
  vec sum = all(0), other = all(0);
  long i = 0;
  for (; i + 2 * LANES <= size; i += 2 * LANES) {
    vec e = exp_of(load(x + i) - shift), f = exp_of(load(x + i + LANES) - shift);
    store(out + i, e);
    store(out + i + LANES, f);
    sum += e;
    other += f;
  }
  for (; i + LANES <= size; i += LANES) {
    vec e = exp_of(load(x + i) - shift);
    store(out + i, e);
    sum += e;
  }
  if (i < size) {
    vec e = exp_of(load_first(x + i, size - i, 0) - shift);
    store_first(out + i, e, size - i);
    other += as_vec(as_bits(e) & first_lanes(size - i));
  }
  return sum_in(sum + other);
}

/* A row that fits one vector never leaves the registers. */
INLINE vec N(exponentials_of_short_row)(const real *x, long size, real *shift, real *sum) {
  vec row = load_first(x, size, (real)-INFINITY);
  *shift = largest_in(row);
  vec e = as_vec(as_bits(exp_of(row - *shift)) & first_lanes(size));
  *sum = sum_in(e);
  return e;
}

INLINE void N(scale_row)(const real *x, real *out, real scale, long size) {
  long i = 0;
  for (; i + LANES <= size; i += LANES) store(out + i, load(x + i) * scale);
  if (i < size) store_first(out + i, load_first(x + i, size - i, 0) * scale, size - i);
}

static void N(softmax)(const void *x_, void *out_, long rows, long size) {
  const real *x = x_;
  real *out = out_, shift, sum;
  if (size < LANES) {
    for (long row = 0; row < rows; row++, x += size, out += size) {
      vec e = N(exponentials_of_short_row)(x, size, &shift, &sum);
      store_first(out, e * (1 / sum), size);
    }
    return;
  }
  for (long row = 0; row < rows; row++, x += size, out += size) {
    sum = N(exponentials_of_row)(x, out, N(top_of_row)(x, size), size);
    N(scale_row)(out, out, 1 / sum, size);
  }
}

/* The sum of exp(x - shift), nothing written. */
INLINE real N(sum_of_exponentials)(const real *x, real shift, long size) {
  real total;
#define TERM(i) exp_of(load(x + (i)) - shift)
#define LAST(i, n) as_vec(as_bits(exp_of(load_first(x + (i), n, shift) - shift)) & first_lanes(n))
  SUM_OF_ROW(total, size, TERM, LAST);
#undef TERM
#undef LAST
  return total;
}

INLINE real N(log_of)(real x) {
#if REAL_BITS == 32
  return logf(x);
#else
  return log(x);
#endif
}

static void N(log_softmax)(const void *x_, void *out_, long rows, long size) {
  const real *x = x_;
  real *out = out_;
  for (long row = 0; row < rows; row++, x += size, out += size) {
    real shift = N(top_of_row)(x, size), log_sum = N(log_of)(N(sum_of_exponentials)(x, shift, size));
    long i = 0;
    for (; i + LANES <= size; i += LANES) store(out + i, load(x + i) - shift - log_sum);
    if (i < size) store_first(out + i, load_first(x + i, size - i, 0) - shift - log_sum, size - i);
  }
}

static void N(softmax_gradient)(const void *grad_, const void *out_, void *found_, long rows, long size) {
  const real *grad = grad_, *out = out_;
  real *found = found_, dot;
  for (long row = 0; row < rows; row++, grad += size, out += size, found += size) {
#define TERM(i) load(grad + (i)) * load(out + (i))
#define LAST(i, n) load_first(grad + (i), n, 0) * load_first(out + (i), n, 0)
    SUM_OF_ROW(dot, size, TERM, LAST);
#undef TERM
#undef LAST
    long i = 0;
    for (; i + LANES <= size; i += LANES) store(found + i, load(out + i) * (load(grad + i) - dot));
    if (i < size) {
      vec last = load_first(out + i, size - i, 0) * (load_first(grad + i, size - i, 0) - dot);
      store_first(found + i, last, size - i);
    }
  }
}

static void N(log_softmax_gradient)(const void *grad_, const void *out_, void *found_, long rows, long size) {
  const real *grad = grad_, *out = out_;
  real *found = found_, sum;
  for (long row = 0; row < rows; row++, grad += size, out += size, found += size) {
#define TERM(i) load(grad + (i))
#define LAST(i, n) load_first(grad + (i), n, 0)
    SUM_OF_ROW(sum, size, TERM, LAST);
#undef TERM
#undef LAST
    long i = 0;
    for (; i + LANES <= size; i += LANES) store(found + i, load(grad + i) - exp_of(load(out + i)) * sum);
    if (i < size) {
      vec last = load_first(grad + i, size - i, 0) - exp_of(load_first(out + i, size - i, 0)) * sum;
      store_first(found + i, last, size - i);
    }
  }
}
