/* One number in, one number out, and gradients of such functions.

   Each is given as an expression of vectors; `curve_over` and `slope_over` run it over arrays.

   Takes any numbers, NaN and infinities too. Included by kernels.c; called by bindings/pointwise.c. NOTE [Kernels] in
   table.h. */
#include "simd_math.h"
#include "simd_rows.h"

#define OPTIONS 4
struct numbers {
  vec at[OPTIONS];
};
typedef vec (*curve)(vec x, const struct numbers *n);
typedef vec (*slope)(vec grad, vec x, const struct numbers *n);

INLINE struct numbers spread(const double *options) {
  struct numbers n;
  for (int i = 0; i < OPTIONS; i++) n.at[i] = all((real)options[i]);
  return n;
}

INLINE void put_or_stream(real *p, vec v, int streams) {
  if (streams)
    stream(p, v);
  else
    store(p, v);
}

INLINE void curve_over(curve f, const real *x, real *out, long size, const double *options, int streams) {
  struct numbers n = spread(options);
  long i = streams ? before_aligned(out, size) : 0;
  if (i) store_part(out, f(load_part(x, i, 1), &n), i);
  for (; i + LANES <= size; i += LANES) put_or_stream(out + i, f(load(x + i), &n), streams);
  if (streams) end_of_stream();
  if (i < size) store_part(out + i, f(load_part(x + i, size - i, 1), &n), size - i);
}

INLINE void slope_over(slope f, const real *grad, const real *x, real *found, long size, const double *options,
                       int streams) {
  struct numbers n = spread(options);
  long i = streams ? before_aligned(found, size) : 0;
  if (i) store_part(found, f(load_part(grad, i, 1), load_part(x, i, 1), &n), i);
  for (; i + LANES <= size; i += LANES) put_or_stream(found + i, f(load(grad + i), load(x + i), &n), streams);
  if (streams) end_of_stream();
  if (i < size) {
    vec last = f(load_part(grad + i, size - i, 1), load_part(x + i, size - i, 1), &n);
    store_part(found + i, last, size - i);
  }
}

#define CURVE(name, expression) \
  INLINE vec name##_curve(vec x, const struct numbers *n) { \
    (void)n; \
    return expression; \
  } \
  static void N(name) OF_CURVE { curve_over(name##_curve, x, out, size, options, streams); }
#define SLOPE(name, expression) \
  INLINE vec name##_slope(vec grad, vec x, const struct numbers *n) { \
    (void)n; \
    return expression; \
  } \
  static void N(name) OF_SLOPE { slope_over(name##_slope, grad, x, found, size, options, streams); }

#define NONE all(0)

CURVE(exp, exp_of(x))
CURVE(expm1, expm1_of(x))
CURVE(log, log_of(x))
CURVE(log1p, log1p_of(x))
CURVE(erf, erf_of(x))
SLOPE(erf_gradient, grad * (exp_of(-(x * x)) * (real)1.12837916709551257390))

/* x is the curve's result here */
CURVE(tanh, tanh_of(x))
SLOPE(tanh_gradient, grad - grad * (x * x))
CURVE(sigmoid, sigmoid_of(x))
SLOPE(sigmoid_gradient, grad * ((1 - x) * x))

CURVE(logsigmoid, logsigmoid_of(x))
SLOPE(logsigmoid_gradient, grad * sigmoid_of(-x))

/* numbers: beta, threshold; then 1 / beta */
INLINE vec softplus_bend(vec x, const struct numbers *n) {
  vec scaled = x * n->at[0];
  return choose(scaled > n->at[1], x, softplus_of(scaled) * n->at[2]);
}
INLINE vec softplus_bend_slope(vec grad, vec x, const struct numbers *n) {
  vec scaled = x * n->at[0];
  return choose(scaled > n->at[1], grad, grad * sigmoid_of(scaled));
}
static void N(softplus) OF_CURVE {
  const double numbers[OPTIONS] = {options[0], options[1], 1 / options[0]};
  curve_over(softplus_bend, x, out, size, numbers, streams);
}
SLOPE(softplus_gradient, softplus_bend_slope(grad, x, n))

CURVE(relu, choose(x <= 0, NONE, x))
SLOPE(relu_gradient, choose(x <= 0, NONE, grad))

/* numbers: negative_slope */
CURVE(leaky_relu, choose(x > 0, x, x * n->at[0]))
SLOPE(leaky_relu_gradient, choose(x > 0, grad, grad * n->at[0]))

/* numbers: least, most; NaN stays NaN, and where the limits are in the wrong order the larger is the result */
INLINE vec brought_between(vec x, vec least, vec most) {
  vec above = choose(x < least, least, x);
  return choose(above > most, most, above);
}
CURVE(hardtanh, brought_between(x, n->at[0], n->at[1]))
SLOPE(hardtanh_gradient, choose((x <= n->at[0]) | (x >= n->at[1]), NONE, grad))

CURVE(hardsigmoid, brought_between(x + 3, NONE, all(6)) / 6)
SLOPE(hardsigmoid_gradient, choose((x > -3) & (x < 3), grad / 6, NONE))
CURVE(hardswish, x * brought_between(x + 3, NONE, all(6)) / 6)
SLOPE(hardswish_gradient, choose(x <= -3, NONE, choose(x < 3, grad * (x / 3 + (real)0.5), grad)))

/* numbers: width */
CURVE(softshrink, x - brought_between(x, -n->at[0], n->at[0]))
CURVE(hardshrink, choose((x >= -n->at[0]) & (x <= n->at[0]), NONE, x))
SLOPE(shrink_gradient, choose((x >= -n->at[0]) & (x <= n->at[0]), NONE, grad))

/* numbers: alpha * scale, scale, input_scale; alpha * scale * input_scale in the gradient */
INLINE vec elu_bend(vec x, const struct numbers *n) {
  return choose(x > 0, x * n->at[1], expm1_of(x * n->at[2]) * n->at[0]);
}
INLINE vec elu_bend_slope(vec grad, vec x, const struct numbers *n) {
  return choose(x <= 0, grad * (exp_of(x * n->at[2]) * n->at[0]), grad * n->at[1]);
}
static void N(elu) OF_CURVE {
  const double numbers[OPTIONS] = {options[0] * options[1], options[1], options[2]};
  curve_over(elu_bend, x, out, size, numbers, streams);
}
static void N(elu_gradient) OF_SLOPE {
  const double numbers[OPTIONS] = {options[0] * options[1] * options[2], options[1], options[2]};
  slope_over(elu_bend_slope, grad, x, found, size, numbers, streams);
}

/* x * gate(x), whose derivative is gate + x * gate' */
INLINE vec gelu_slope_of(vec x) {
  struct normal normal = normal_of(x);
  return normal.below + x * normal.density;
}
CURVE(gelu, x * normal_of(x).below)
SLOPE(gelu_gradient, grad * gelu_slope_of(x))

/* sigmoid(x) * (1 - sigmoid(x)) * rise + sigmoid(x); neither sigmoid is taken as a difference, which would cancel */
INLINE vec gate_slope_of(vec x, vec rise) {
  vec e = exp_of(-absolute(x)), large = 1 / (1 + e), small = e * large;
  return small * large * rise + choose(x > 0, large, small);
}

/* gate = sigmoid(2 b), b = sqrt(2 / pi) * (x + 0.044715 x^3) */
#define TANH_SLOPE ((real)0.79788456080286535588)
#define TANH_CUBE ((real)0.035677408136300125)
INLINE vec twice_b(vec x) { return x * (x * x * (2 * TANH_CUBE) + 2 * TANH_SLOPE); }
INLINE vec rise_of(vec x) { return x * (x * x * (6 * TANH_CUBE) + 2 * TANH_SLOPE); }
CURVE(gelu_tanh, x * sigmoid_of(twice_b(x)))
SLOPE(gelu_tanh_gradient, grad * gate_slope_of(twice_b(x), rise_of(x)))

CURVE(silu, x * sigmoid_of(x))
SLOPE(silu_gradient, grad * gate_slope_of(x, x))
