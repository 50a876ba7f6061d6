/* Cross-entropy of rows by class numbers, and its gradient.

   Each class number is a column or the ignored one: the binding copies and checks them. No row is empty. Included by
   kernels.c, after rows.c; called by bindings/losses.c. NOTE [Kernels] in table.h. */

/* The sum of weight * (log_sum + shift - x) over a row, weight NULL for ones: what label smoothing spreads. */
INLINE real N(spread_loss)(const real *x, const real *weight, real shift, real log_sum, long size) {
  real total;
#define TERM(i) ({ vec v_ = log_sum - (load(x + (i)) - shift); weight ? v_ * load(weight + (i)) : v_; })
#define LAST(i, n) ({ \
    vec v_ = as_vec(as_bits(log_sum - (load_first(x + (i), n, 0) - shift)) & first_lanes(n)); \
    weight ? v_ * load_first(weight + (i), n, 0) : v_; })
  SUM_OF_ROW(total, size, TERM, LAST);
#undef TERM
#undef LAST
  return total;
}

/* Rows begin..end of `class_losses`: the loss of each, its maximum and the sum of exp(x - maximum),
   and whether it counts. */
static void N(class_losses)(const void *x_, const void *targets_, const void *weight_, long ignored, double smoothing,
                            void *losses_, void *sums_, void *factors_, long begin, long end, long size) {
  const real *x = (const real *)x_ + begin * size, *weight = weight_;
  const int64_t *targets = targets_;
  real *losses = losses_, *sums = sums_, *factors = factors_;
  for (long row = begin; row < end; row++, x += size) {
    real shift, sum;
    if (size < LANES) {
      N(exponentials_of_short_row)(x, size, &shift, &sum);
    } else {
      shift = N(top_of_row)(x, size);
      sum = N(sum_of_exponentials)(x, shift, size);
    }
    real log_sum = N(log_of)(sum);
    sums[2 * row] = shift;
    sums[2 * row + 1] = sum;
    if (targets[row] == ignored) {
      losses[row] = factors[row] = 0;
      continue;
    }
    factors[row] = 1;
    losses[row] = log_sum - (x[targets[row]] - shift);
    if (weight) losses[row] = weight[targets[row]] ? losses[row] * weight[targets[row]] : 0;
    if (smoothing) {
      real spread = N(spread_loss)(x, weight, shift, log_sum, size);
      losses[row] = losses[row] * (real)(1 - smoothing) + spread * (real)(smoothing / (double)size);
    }
  }
}

/* Add up the losses, and what each target weighs; turn the factors into shares of the mean. */
static double N(mean_loss)(const void *losses_, void *factors_, const void *targets_, const void *weight_, int mean,
                           long rows) {
  const real *losses = losses_, *weight = weight_;
  const int64_t *targets = targets_;
  real *factors = factors_;
  double total = 0, weights = 0;
  for (long row = 0; row < rows; row++) {
    total += losses[row];
    if (factors[row]) weights += weight ? weight[targets[row]] : 1;
  }
  if (!mean) return total;
  for (long row = 0; row < rows; row++)
    if (factors[row]) factors[row] = (real)(1 / weights);
  return weights ? total / weights : (double)NAN;
}

/* n numbers at i of exp(x - shift) * scale - spread * weight, weight NULL for ones. */
INLINE vec N(slope_at)(const real *x, const real *weight, real shift, real scale, real spread, long i, long n) {
  vec v = exp_of(load_some(x + i, n) - shift) * scale;
  return v - (weight ? spread * load_some(weight + i, n) : all(spread));
}

/* Rows begin..end of `class_gradients`; `grads` has one number, or one for each row (step 1). */
static void N(class_gradients)(const void *grads_, long step, const void *x_, const void *targets_, const void *weight_,
                            double total_weight, const void *sums_, const void *factors_, double smoothing, void *found_,
                            long begin, long end, long size, int streams) {
  const real *grads = grads_, *x = (const real *)x_ + begin * size, *weight = weight_, *sums = sums_, *factors = factors_;
  const int64_t *targets = targets_;
  real *found = (real *)found_ + begin * size;
  for (long row = begin; row < end; row++, x += size, found += size) {
    real factor = grads[row * step] * factors[row], spread = factor * (real)(smoothing / (double)size);
    if (!factors[row]) {
      memset(found, 0, (size_t)size * sizeof(real));
      continue;
    }
    real at_target = (weight ? weight[targets[row]] : 1) * factor;
    if (smoothing) at_target *= (real)(1 - smoothing);
    real scale = (at_target + spread * (real)total_weight) / sums[2 * row + 1], shift = sums[2 * row];
    real off = weight ? spread * weight[targets[row]] : spread;
    real at = N(slope_at)(x, NULL, shift, scale, off, targets[row], 1)[0];
#define VALUE(i, n) N(slope_at)(x, NULL, shift, scale, 0, i, n)
#define SMOOTHED(i, n) N(slope_at)(x, weight, shift, scale, spread, i, n)
    if (smoothing) WRITE_ROW(found, size, streams, SMOOTHED);
    else WRITE_ROW(found, size, streams, VALUE);
#undef VALUE
#undef SMOOTHED
    found[targets[row]] = at - at_target;
  }
  if (streams) end_of_stream();
}
