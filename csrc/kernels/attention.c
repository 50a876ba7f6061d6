/* Attention of one head over one text, and its gradient.

   Queries come in blocks, so that their scores stay in the cache. No probabilities are kept: the gradient computes
   them anew from exp(score − log of the row's sum), which costs less than writing and reading them.

   Returns 0 if there is no memory to work in, else 1. Included by kernels.c, after gemm.c; called by bindings/attention.c.
   NOTE [Kernels] in table.h. */

#define BLOCK_NUMBERS 32768 /* scores that are held at once */

/* A product whose B is packed. Vectors of C need not be whole if `columns` were packed. */
INLINE void N(packed_product)(const void *a, long a_row, long a_step, const real *panels, void *c, long c_row, long m, long n,
                     long k, int add) {
  const struct product p = {.a = a, .a_row = a_row, .a_step = a_step, .panels = panels, .c = c, .c_row = c_row,
                            .c_column = 1, .m = m, .n = n, .k = k, .add = add};
  N(multiply)(&p, 0, m, 0, (n + TILE_COLUMNS - 1) / TILE_COLUMNS);
}

/* Pack k rows of n numbers for `packed_product`; return the first free place behind them. */
static real *N(pack_matrix)(const void *b, long b_step, long b_column, long k, long n, real *panels) {
  const struct product p = {.b = b, .b_step = b_step, .b_column = b_column, .k = k, .n = n};
  const long count = (n + TILE_COLUMNS - 1) / TILE_COLUMNS;
  N(pack)(&p, panels, 0, count);
  return panels + count * TILE_COLUMNS * k;
}

/* Write what is added to each row of scores: the keys' biases, and −∞ for what is over in the last vector. */
static void N(fill_biases)(const real *bias, long keys, long width, real *biases) {
  for (long i = 0; i < keys; i++) biases[i] = bias ? bias[i] : 0;
  for (long i = keys; i < width; i++) biases[i] = (real)-INFINITY;
}

/* e to the power of numbers that are not above 0 by more than a rounding: exp_of (simd/simd.h) without what only others need.
   Results too small for a normal number become 0; NaN stays NaN. */
INLINE vec N(exp_below)(vec x) {
#if REAL_BITS == 32
  const real magic = 12582912.0f, least = -87.0f;
  const vec shifted = x * 1.44269504088896341f + magic, n = shifted - magic;
  const vec r = x - n * 0.693145751953125f - n * 1.42860682030941723212e-6f;
  const vec p = exp_series(r);
  const vec found = as_vec(as_bits(p) + (as_bits(shifted) << MANTISSA)); /* n stands in the last bits of `shifted` */
  return as_vec(as_bits(found) & ~(x < least));
#else
  return exp_of(x);
#endif
}

/* Scores become exp(score · scale + bias − largest); return the largest, and the sum. What is over becomes 0. */
INLINE real N(exponentials)(real *scores, const real *biases, long width, real scale, real *sum) {
  vec top = load(scores) * scale + load(biases), total = all(0);
  for (long i = LANES; i < width; i += LANES) top = larger(load(scores + i) * scale + load(biases + i), top);
  const real shift = largest_of(top);
  for (long i = 0; i < width; i += LANES) {
    vec e = N(exp_below)(load(scores + i) * scale + load(biases + i) - shift);
    store(scores + i, e);
    total += e;
  }
  *sum = sum_of(total);
  return shift;
}

static int N(attend)(const struct attention *t) {
  const long queries = t->queries, keys = t->keys, dim = t->dim, width = (keys + LANES - 1) / LANES * LANES;
  if (!queries || !keys) return 1;
  const long rows = BLOCK_NUMBERS / width + 1 < queries ? BLOCK_NUMBERS / width + 1 : queries;
  const long padded = (keys + TILE_COLUMNS) * (dim + TILE_COLUMNS);
  real *turned_keys = scratch_take((size_t)(2 * padded + (rows + 1) * width) * sizeof(real)), *values, *scores;
  if (!turned_keys) return 0;
  values = N(pack_matrix)(t->k, 1, t->k_row, dim, keys, turned_keys);
  scores = N(pack_matrix)(t->v, t->v_row, 1, keys, dim, values);
  real *biases = scores + rows * width;
  N(fill_biases)(t->bias, keys, width, biases);
  for (long top = 0; top < queries; top += rows) {
    const long count = queries - top < rows ? queries - top : rows;
    real *out = (real *)t->out + top * t->out_row, *logs = (real *)t->logs + top * t->logs_row, factor[count];
    N(packed_product)((const real *)t->q + top * t->q_row, t->q_row, 1, turned_keys, scores, width, count, width, dim, 0);
    for (long i = 0; i < count; i++) {
      real sum, shift = N(exponentials)(scores + i * width, biases, width, (real)t->scale, &sum);
      factor[i] = 1 / sum;
      logs[i * t->logs_row] = (real)(shift + log((double)sum));
    }
    N(packed_product)(scores, width, 1, values, out, t->out_row, count, dim, keys, 0);
    for (long i = 0; i < count; i++)
      for (long j = 0; j < dim; j++) out[i * t->out_row + j] *= factor[i];
  }
  scratch_give(turned_keys);
  return 1;
}

/* Scores become probabilities p, and gradients of these the gradients of scores, p · (grad − Σ p · grad) · scale. The
   logarithm has lost digits as a rounded number, so the probabilities are brought to the sum 1 again. */
INLINE void N(score_gradients)(real *scores, real *grads, const real *biases, long width, real scale, real log_sum) {
  vec total = all(0), products = all(0);
  for (long i = 0; i < width; i += LANES) {
    vec e = N(exp_below)(load(scores + i) * scale + load(biases + i) - log_sum);
    store(scores + i, e);
    total += e;
    products += e * load(grads + i);
  }
  const real factor = 1 / sum_of(total), mean = sum_of(products) * factor;
  for (long i = 0; i < width; i += LANES) {
    vec p = load(scores + i) * factor;
    store(scores + i, p);
    store(grads + i, p * (load(grads + i) - mean) * scale);
  }
}

/* Add `count` rows to sums. */
INLINE void N(add_rows)(const real *rows, long count, long width, real *sums) {
  for (long i = 0; i < count; i++)
    for (long j = 0; j < width; j += LANES) store(sums + j, load(sums + j) + load(rows + i * width + j));
}

static int N(attend_gradient)(const struct attention *t) {
  const long queries = t->queries, keys = t->keys, dim = t->dim, width = (keys + LANES - 1) / LANES * LANES;
  if (!queries || !keys) return 1;
  const long rows = BLOCK_NUMBERS / width + 1 < queries ? BLOCK_NUMBERS / width + 1 : queries;
  const long padded = (keys + TILE_COLUMNS) * (dim + TILE_COLUMNS), of_rows = rows * (dim + TILE_COLUMNS);
  real *turned_keys = scratch_take((size_t)(3 * padded + of_rows + 2 * (rows + 1) * width) * sizeof(real));
  if (!turned_keys) return 0;
  real *turned_values = N(pack_matrix)(t->k, 1, t->k_row, dim, keys, turned_keys);
  real *straight_keys = N(pack_matrix)(t->v, 1, t->v_row, dim, keys, turned_values);
  real *some = N(pack_matrix)(t->k, t->k_row, 1, keys, dim, straight_keys);
  real *scores = some + of_rows, *grads = scores + rows * width, *biases = grads + rows * width, *sums = biases + width;
  N(fill_biases)(t->bias, keys, width, biases);
  for (long i = 0; i < width; i++) sums[i] = 0;
  for (long top = 0; top < queries; top += rows) {
    const long count = queries - top < rows ? queries - top : rows;
    const real *q = (const real *)t->q + top * t->q_row, *grad = (const real *)t->grad + top * t->grad_row;
    const real *logs = (const real *)t->logs + top * t->logs_row;
    N(packed_product)(q, t->q_row, 1, turned_keys, scores, width, count, width, dim, 0);
    N(packed_product)(grad, t->grad_row, 1, turned_values, grads, width, count, width, dim, 0);
    for (long i = 0; i < count; i++)
      N(score_gradients)(scores + i * width, grads + i * width, biases, width, (real)t->scale, logs[i * t->logs_row]);
    if (t->g_bias) N(add_rows)(grads, count, width, sums);
    N(pack_matrix)(grad, t->grad_row, 1, count, dim, some);
    N(packed_product)(scores, 1, width, some, t->g_v, t->g_v_row, keys, dim, count, top > 0);
    N(packed_product)(grads, width, 1, straight_keys, (real *)t->g_q + top * t->g_q_row, t->g_q_row, count, dim, keys, 0);
    N(pack_matrix)(q, t->q_row, 1, count, dim, some);
    N(packed_product)(grads, 1, width, some, t->g_k, t->g_k_row, keys, dim, count, top > 0);
  }
  for (long i = 0; t->g_bias && i < keys; i++) ((real *)t->g_bias)[i * t->g_bias_row] = sums[i] / (real)t->scale;
  scratch_give(turned_keys);
  return 1;
}
