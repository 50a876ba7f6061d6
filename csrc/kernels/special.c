/* Functions that take float64 to be right to the last digits; float32 goes through them.

   Takes any numbers, NaN and infinities too. Included by kernels.c, after pointwise.c; called by bindings/pointwise.c.
   NOTE [Kernels] in table.h. */

#if REAL_BITS == 64
#define WIDE_CURVE(name) \
  void N(name) OF_CURVE { curve_over(name##_wide, x, out, size, options, streams); }

/* 1 - erf(x): the normal tail beyond x sqrt(2), with the square of x itself in two pieces. */
INLINE vec erfc_wide(vec x, const struct numbers *n) {
  (void)n;
  const real k = 6;
  vec size = not_above(absolute(x), 28), t = size * 1.41421356237309504880;
  vec high = as_vec(as_bits(size) & -((integer)1 << LOW_BITS));
  vec e = exp_down(-(high * high), (high - size) * (high + size)), inverse = 1 / (t + k);
  vec tail = 2 * SERIES(TAIL_SERIES, (t - k) * inverse) * (e * inverse);
  vec near = 1 - SERIES(ERF_SERIES, x * x) * x;
  return choose(absolute(x) < 0.5, near, choose(x > 0, tail, 2 - tail));
}

/* The normal distribution's quantiles, of (1 + x) / 2, over sqrt(2).
   Source: M. J. Wichura, "Algorithm AS 241", Applied Statistics 37 (1988). */
static const real MIDDLE_P[] = {2.5090809287301226727e+3, 3.3430575583588128105e+4, 6.7265770927008700853e+4,
                                4.5921953931549871457e+4, 1.3731693765509461125e+4, 1.9715909503065514427e+3,
                                1.3314166789178437745e+2, 3.3871328727963666080};
static const real MIDDLE_Q[] = {5.2264952788528545610e+3, 2.8729085735721942674e+4, 3.9307895800092710610e+4,
                                2.1213794301586595867e+4, 5.3941960214247511077e+3, 6.8718700749205790830e+2,
                                4.2313330701600911252e+1, 1.0};
static const real OUTER_P[] = {7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1,
                               1.27045825245236838258, 3.64784832476320460504, 5.76949722146069140550,
                               4.63033784615654529590, 1.42343711074968357734};
static const real OUTER_Q[] = {1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2,
                               1.48103976427480074590e-1, 6.89767334985100004550e-1, 1.67638483018380384940,
                               2.05319162663775882187, 1.0};
static const real END_P[] = {2.01033439929228813265e-7, 2.71155556874348757815e-5, 1.24266094738807843860e-3,
                             2.65321895265761230930e-2, 2.96560571828504891230e-1, 1.78482653991729133580,
                             5.46378491116411436990, 6.65790464350110377720};
static const real END_Q[] = {2.04426310338993978564e-15, 1.42151175831644588870e-7, 1.84631831751005468180e-5,
                             7.86869131145613259100e-4, 1.48753612908506148525e-2, 1.36929880922735805310e-1,
                             5.99832206555887937690e-1, 1.0};
INLINE vec erfinv_wide(vec x, const struct numbers *n) {
  (void)n;
  vec size = absolute(x), q = x * 0.5, r = 0.180625 - q * q;
  vec middle = q * SERIES(MIDDLE_P, r) / SERIES(MIDDLE_Q, r);
  vec root = root_of(-log_of((1 - size) * 0.5)), near = root - 1.6, far = root - 5;
  vec outer = SERIES(OUTER_P, near) / SERIES(OUTER_Q, near), end = SERIES(END_P, far) / SERIES(END_Q, far);
  vec found = choose(size <= 0.85, middle, sign_of(x, choose(root <= 5, outer, end))) * 0.70710678118654752440;
  return choose(size == 1, sign_of(x, all(INFINITY)), choose(size < 1, found, all(NAN)));
}

/* lgamma(2 + e) / e by (e - 1/4) / (3/4) for -1/2 <= e <= 1, and Stirling's series; see kernels/special/gamma.py. */
static const real BETWEEN[] = {
    3.878098630841008e-12,  -1.2158949590477255e-11, 1.6872010456134027e-11, -5.342693581054193e-11, 2.2036764697046337e-10,
    -6.998115136813461e-10, 2.162475934751875e-09,   -6.925713105559941e-09, 2.234775211443794e-08,  -7.234601854495343e-08,
    2.3583141940635866e-07, -7.755340125369117e-07,  2.5781215371009545e-06, -8.690385586684712e-06, 2.9836329700087517e-05,
    -0.00010503681061201159, 0.0003832198800362254,  -0.0014752842201940085, 0.006196636568244162,   -0.03054116466683421,
    0.21917882116244464,    0.4994868595695864};
static const real STIRLING[] = {43867. / 798 / 306, -3617. / 510 / 240, 7. / 6 / 182,  -691. / 2730 / 132, 5. / 66 / 90,
                                -1. / 30 / 56,      1. / 42 / 30,       -1. / 30 / 12, 1. / 6 / 2};
static const real DIGAMMA_SERIES[] = {43867. / 798 / 18, -3617. / 510 / 16, 7. / 6 / 14, -691. / 2730 / 12, 5. / 66 / 10,
                                      -1. / 30 / 8,      1. / 42 / 6,       -1. / 30 / 4, 1. / 6 / 2};
#define FAR_GAMMA 13 /* from here on the series reach the last digit */

INLINE vec between_of(vec e) { return e * SERIES(BETWEEN, (e - 0.25) / 0.75); }

/* Below 1/2, C's library reflects one number after the other. */
INLINE vec lgamma_wide(vec x, const struct numbers *n) {
  (void)n;
  ivec near = x < 1.5, far = x > FAR_GAMMA;
  vec z = choose(far, all(3), x), product = all(1);
  for (int i = 0; i < FAR_GAMMA - 3; i++) {
    ivec above = z > 3;
    z = choose(above, z - 1, z);
    product = choose(above, product * z, product);
  }
  vec log = log_of(choose(near | far, x, product)), e = choose(near, x - 1, z - 2), inverse = 1 / x;
  vec middle = between_of(e) + choose(near, -log, log);
  vec stirling = (x - 0.5) * (log - 1) + (0.41893853320467274178 + SERIES(STIRLING, inverse * inverse) * inverse);
  vec found = choose(far, choose(x == INFINITY, x, stirling), middle);
  real lane[LANES], slow[LANES];
  store(lane, x), store(slow, found);
  for (long i = 0; i < LANES; i++)
    if (!(lane[i] >= 0.5)) slow[i] = lgamma(lane[i]);
  return load(slow);
}

INLINE vec digamma_wide(vec x, const struct numbers *n) {
  (void)n;
  vec z = choose(x < 0.5, 1 - x, x), shift = all(0);
  for (int i = 0; i < FAR_GAMMA; i++) {
    ivec below = z < FAR_GAMMA;
    shift = choose(below, shift + 1 / z, shift);
    z = choose(below, z + 1, z);
  }
  vec inverse = 1 / (z * z);
  vec found = log_of(z) - 0.5 / z - inverse * SERIES(DIGAMMA_SERIES, inverse) - shift;
  real lane[LANES], slow[LANES];
  store(lane, x), store(slow, found);
  for (long i = 0; i < LANES; i++) {
    if (!(lane[i] < 0.5)) continue;
    double fraction = lane[i] - rint(lane[i]);
    slow[i] = lane[i] == 0 ? copysign(INFINITY, -lane[i])
                           : fraction == 0 ? NAN : slow[i] - 3.14159265358979323846 / tan(3.14159265358979323846 * fraction);
  }
  return load(slow);
}

#else
#define WIDENED_AT_ONCE 256
typedef void(*wide_curve) OF_CURVE;

static void through_wide(wide_curve f, const real *x, real *out, long size, const double *options) {
  double wide[WIDENED_AT_ONCE], found[WIDENED_AT_ONCE];
  for (long count; size; size -= count, x += count, out += count) {
    count = size < WIDENED_AT_ONCE ? size : WIDENED_AT_ONCE;
    for (long i = 0; i < count; i++) wide[i] = x[i];
    f(wide, found, count, options, 0);
    for (long i = 0; i < count; i++) out[i] = (real)found[i];
  }
}

#define WIDE_CURVE(name) \
  void JOIN(name, LEVEL, f64) OF_CURVE; \
  static void N(name) OF_CURVE { \
    (void)streams; \
    through_wide(JOIN(name, LEVEL, f64), x, out, size, options); \
  }
#endif

WIDE_CURVE(erfc)
WIDE_CURVE(erfinv)
WIDE_CURVE(lgamma)
WIDE_CURVE(digamma)
