/* Numbers of the gamma distribution, by rejection; see kernels/random/gamma.py, whose names these are.

   Of each number d is 0, or 1 / (9 c^2), or either is NaN: else drawing might not end. Included by kernels.c, after counts.c;
   called by bindings/random_numbers.c. NOTE [Kernels] in table.h. */

/* A product that is rounded: the compiler does not fuse it with a sum, as the reference and PyTorch do not. */
static double rounded_product(double a, double b) {
  volatile double found = a * b;
  return found;
}

/* A standard normal number, of a pair whose second one is left in `spare`: whether there is one, and it. */
static double next_normal(uint32_t *state, double *spare) {
  if (spare[0] != 0) return spare[0] = 0, spare[1];
  double first = next_unit(state), second = next_unit(state);
  double radius = sqrt(-2.0 * log1p(-second)), angle = 2.0 * 3.14159265358979323846 * first;
  spare[0] = 1, spare[1] = radius * sin(angle);
  return radius * cos(angle);
}

static double one_gamma(uint32_t *state, double *spare, double power, double d, double c) {
  double scale = power != 0 ? pow(1 - next_unit(state), power) : 1;
  for (;;) {
    double x = next_normal(state, spare), y = 1 + rounded_product(c, x);
    if (y <= 0) continue;
    double v = y * y * y, u = 1 - next_unit(state), square = x * x;
    if (u < 1 - rounded_product((double)0.0331f * square, square)) return scale * d * v;
    if (!(log(u) >= rounded_product(0.5, square) + rounded_product(d, 1 - v + log(v)))) return scale * d * v;
  }
}

static void N(random_gammas)(uint32_t *state, double *spare, const double *powers, const double *d, const double *c, double *out,
                             long size) {
  for (long i = 0; i < size; i++) out[i] = d[i] == 0 ? 0 : one_gamma(state, spare, powers[i], d[i], c[i]);
}
