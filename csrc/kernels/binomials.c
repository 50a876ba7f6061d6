/* Numbers of the binomial distribution, by rejection (BTRS) or as sums; see kernels/random/distributions.py, whose names these are.

   Counts are no NaN. Included by kernels.c, after gammas.c; called by bindings/random_numbers.c. NOTE [Kernels] in table.h. */

/* log k! beyond Stirling's formula */
static double binomial_tail(double k) {
  static const double TAILS[] = {0.0810614667953272,  0.0413406959554092,  0.0276779256849983,  0.02079067210376509, 0.0166446911898211,
                                 0.0138761288230707,  0.0118967099458917,  0.0104112652619720,  0.00925546218271273, 0.00833056343336287};
  if (k <= 9) return TAILS[(int)k];
  double square = (k + 1) * (k + 1);
  return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1);
}

/* How many geometric numbers fit into `count`. */
static double binomial_by_geometric(uint32_t *state, double count, double probability) {
  double total = 0, log_failure = log1p(-probability);
  for (double found = 0;; found++) {
    double number = next_unit(state);
    total += number != 0 ? ceil(log(number) / log_failure) : INFINITY;
    if (total > count) return found;
  }
}

static double binomial_by_rejection(uint32_t *state, double count, double probability) {
  double mean = rounded_product(count, probability), deviation = sqrt(mean * (1 - probability));
  double b = 1.15 + rounded_product(2.53, deviation);
  double a = -0.0873 + rounded_product(0.0248, b) + rounded_product(0.01, probability);
  double c = mean + 0.5, v_r = 0.92 - 4.2 / b, r = probability / (1 - probability), alpha = (2.83 + 5.1 / b) * deviation;
  double m = floor(rounded_product(count + 1, probability));
  for (;;) {
    double u = next_unit(state) - 0.5, v = next_unit(state), us = 0.5 - fabs(u);
    double k = us ? floor(rounded_product(2 * a / us + b, u) + c) : -1;
    if (k < 0 || k > count) continue;
    if (us >= 0.07 && v <= v_r) return k;
    double height = v * alpha / (a / (us * us) + b);
    double bound = rounded_product(m + 0.5, log((m + 1) / (r * (count - m + 1))));
    bound += rounded_product(count + 1, log((count - m + 1) / (count - k + 1)));
    bound += rounded_product(k + 0.5, log(r * (count - k + 1) / (k + 1)));
    bound = bound + binomial_tail(m) + binomial_tail(count - m) - binomial_tail(k) - binomial_tail(count - k);
    if (height <= 0 || log(height) <= bound) return k;
  }
}

static double one_binomial(uint32_t *state, double count, double probability) {
  if (count <= 0 || probability <= 0) return 0;
  if (probability >= 1) return count;
  if (isnan(probability)) return NAN;
  if (isinf(count)) return count;
  double rarer = probability > 0.5 ? 1 - probability : probability;
  double found = count * rarer >= 10 ? binomial_by_rejection(state, count, rarer) : binomial_by_geometric(state, count, rarer);
  return probability <= 0.5 ? found : count - found;
}

static void N(random_binomials)(uint32_t *state, const double *counts, const double *probabilities, double *out, long size) {
  for (long i = 0; i < size; i++) out[i] = one_binomial(state, counts[i], probabilities[i]);
}
