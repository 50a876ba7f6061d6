/* One number in, one number out; gradients of such functions.

   Declares what the family puts into the table of table.h, for bindings/pointwise.c, which counts the options; what each
   expects is said beside it. */
#ifndef POINTWISE_H
#define POINTWISE_H

/* A curve writes out = f(x), a slope found = grad * f'; f' is taken at x or at f's result, as the kernel needs.
   `options` are f's numbers; where `streams`, the result goes
   past the caches (simd/simd_rows.h). */
#define OF_CURVE (const void *x, void *out, long size, const double *options, int streams)
#define OF_SLOPE (const void *grad, const void *x, void *found, long size, const double *options, int streams)

#define POINTWISE(K) \
  K(exp, void, OF_CURVE) \
  K(expm1, void, OF_CURVE) \
  K(log, void, OF_CURVE) \
  K(log1p, void, OF_CURVE) \
  K(tanh, void, OF_CURVE) \
  K(tanh_gradient, void, OF_SLOPE) \
  K(sigmoid, void, OF_CURVE) \
  K(sigmoid_gradient, void, OF_SLOPE) \
  K(logsigmoid, void, OF_CURVE) \
  K(logsigmoid_gradient, void, OF_SLOPE) \
  K(softplus, void, OF_CURVE) \
  K(softplus_gradient, void, OF_SLOPE) \
  K(erf, void, OF_CURVE) \
  K(erf_gradient, void, OF_SLOPE) \
  K(relu, void, OF_CURVE) \
  K(relu_gradient, void, OF_SLOPE) \
  K(leaky_relu, void, OF_CURVE) \
  K(leaky_relu_gradient, void, OF_SLOPE) \
  K(hardtanh, void, OF_CURVE) \
  K(hardtanh_gradient, void, OF_SLOPE) \
  K(hardsigmoid, void, OF_CURVE) \
  K(hardsigmoid_gradient, void, OF_SLOPE) \
  K(hardswish, void, OF_CURVE) \
  K(hardswish_gradient, void, OF_SLOPE) \
  K(softshrink, void, OF_CURVE) \
  K(hardshrink, void, OF_CURVE) \
  K(shrink_gradient, void, OF_SLOPE) \
  K(elu, void, OF_CURVE) \
  K(elu_gradient, void, OF_SLOPE) \
  K(gelu, void, OF_CURVE) \
  K(gelu_gradient, void, OF_SLOPE) \
  K(gelu_tanh, void, OF_CURVE) \
  K(gelu_tanh_gradient, void, OF_SLOPE) \
  K(silu, void, OF_CURVE) \
  K(silu_gradient, void, OF_SLOPE) \
  K(erfc, void, OF_CURVE) \
  K(erfinv, void, OF_CURVE) \
  K(lgamma, void, OF_CURVE) \
  K(digamma, void, OF_CURVE)

#endif
