/* Vectors of the machine's width, and the functions that kernels take of them.

   Compiled once for each LEVEL (v1: any x86-64 or ARM, v3: AVX2 + FMA, v4: AVX-512) and each REAL (float, double), by
   GCC or clang. `vec` holds LANES numbers; the operators + - * / work on it, and a * b + c becomes one fused
   instruction where the machine has it. Comparisons give `ivec`: all bits set or none. Pointers need no alignment, but
   all LANES numbers behind them must exist: `load_part` and `store_part` take fewer. */
#ifndef SIMD_H
#define SIMD_H

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>
#if defined(__AVX512DQ__)
#include <immintrin.h>
#endif

#define JOIN_(a, b, c) a##_##b##_##c
#define JOIN(a, b, c) JOIN_(a, b, c)
#define N(name) JOIN(name, LEVEL, KIND) /* the name of a kernel at this level for this type */

#if REAL_BITS == 32
typedef float real;
typedef int32_t integer;
#define EPSILON FLT_EPSILON
#define REAL_MAX FLT_MAX
#define MANTISSA 23
#define EXPONENT_BIAS 127
#else
typedef double real;
typedef int64_t integer;
#define EPSILON DBL_EPSILON
#define REAL_MAX DBL_MAX
#define MANTISSA 52
#define EXPONENT_BIAS 1023
#endif

#define LANES ((long)(VECTOR_BYTES / sizeof(real)))
typedef real vec __attribute__((vector_size(VECTOR_BYTES)));
typedef integer ivec __attribute__((vector_size(VECTOR_BYTES)));
#define INLINE static inline __attribute__((always_inline))

INLINE vec load(const real *p) {
  vec v;
  memcpy(&v, p, sizeof v);
  return v;
}
INLINE void store(real *p, vec v) { memcpy(p, &v, sizeof v); }

/* The first n of LANES numbers; the others are `fill`. */
INLINE vec load_part(const real *p, long n, real fill) {
  real whole[LANES];
  for (long i = 0; i < LANES; i++) whole[i] = fill;
  memcpy(whole, p, (size_t)n * sizeof(real));
  return load(whole);
}
INLINE void store_part(real *p, vec v, long n) { memcpy(p, &v, (size_t)n * sizeof(real)); }

INLINE vec all(real x) { return x - (vec){0}; }
INLINE vec as_vec(ivec bits) {
  vec v;
  memcpy(&v, &bits, sizeof v);
  return v;
}
INLINE ivec as_bits(vec v) {
  ivec bits;
  memcpy(&bits, &v, sizeof v);
  return bits;
}
INLINE vec choose(ivec where, vec yes, vec no) {
  ivec mask = where != 0; /* so that GCC sees a choice and uses the machine's masks */
  return as_vec((mask & as_bits(yes)) | (~mask & as_bits(no)));
}
/* Of the two, as the machine's own instruction does it: b where one of them is NaN. */
INLINE vec larger(vec a, vec b) { return choose(a > b, a, b); }
INLINE vec smaller(vec a, vec b) { return choose(a < b, a, b); }
INLINE vec absolute(vec x) { return as_vec(as_bits(x) & (integer)(((uint64_t)1 << (sizeof(real) * 8 - 1)) - 1)); }
INLINE vec sign_of(vec x, vec magnitude) {
  ivec top = as_bits(all((real)-0.0));
  return as_vec((as_bits(x) & top) | as_bits(magnitude));
}
INLINE ivec is_nan(vec x) { return x != x; }

/* a * b + c, rounded once. */
INLINE vec fused(vec a, vec b, vec c) {
  for (long i = 0; i < LANES; i++) a[i] = REAL_BITS == 32 ? (real)fmaf((float)a[i], (float)b[i], (float)c[i]) : (real)fma(a[i], b[i], c[i]);
  return a;
}

/* GCC and clang make one instruction of the loop. */
INLINE vec root_of(vec x) {
  real lane[LANES];
  store(lane, x);
  for (long i = 0; i < LANES; i++) lane[i] = REAL_BITS == 32 ? (real)sqrtf((float)lane[i]) : (real)sqrt(lane[i]);
  return load(lane);
}

INLINE real sum_of(vec v) {
  real lane[LANES];
  store(lane, v);
  for (long half = LANES / 2; half; half /= 2)
    for (long i = 0; i < half; i++) lane[i] += lane[i + half];
  return lane[0];
}
INLINE real largest_of(vec v) {
  real lane[LANES];
  store(lane, v);
  real top = lane[0];
  for (long i = 1; i < LANES; i++) top = lane[i] > top ? lane[i] : top;
  return top;
}

/* 2 to the power of whole numbers n, as their sum in two halves, so that the least subnormal can be reached. */
INLINE vec scaled(vec x, ivec n) {
#if defined(__AVX512DQ__) && VECTOR_BYTES == 64 && REAL_BITS == 32
  return (vec)_mm512_scalef_ps((__m512)x, _mm512_cvtepi32_ps((__m512i)n));
#elif defined(__AVX512DQ__) && VECTOR_BYTES == 64
  return (vec)_mm512_scalef_pd((__m512d)x, _mm512_cvtepi64_pd((__m512i)n));
#else
  ivec half = n >> 1;
  vec first = as_vec((half + EXPONENT_BIAS) << MANTISSA), second = as_vec((n - half + EXPONENT_BIAS) << MANTISSA);
  return x * first * second;
#endif
}

#if REAL_BITS == 32
/* e to the power of r, |r| <= ln 2 / 2. */
INLINE vec exp_series(vec r) {
  vec p = all(1.9875691500e-4f);
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  return p * (r * r) + r + 1.0f;
}
#endif

/* e to the power of x: x = n ln 2 + r, |r| <= ln 2 / 2, a polynomial in r, times 2^n. NaN stays NaN. */
INLINE vec exp_of(vec x) {
#if REAL_BITS == 32
  const real magic = 12582912.0f, least = -104.0f, most = 89.0f; /* beyond are 0 and infinity */
  vec held = smaller(all(most), larger(all(least), x)); /* NaN stays NaN */
  vec shifted = held * 1.44269504088896341f + magic;
  vec n = shifted - magic;
  vec r = held - n * 0.693145751953125f;
  r = r - n * 1.42860682030941723212e-6f;
  vec p = exp_series(r);
  ivec whole = as_bits(shifted) - as_bits(all(magic));
#else
  const real magic = 6755399441055744.0, least = -746.0, most = 710.0;
  vec held = smaller(all(most), larger(all(least), x)); /* NaN stays NaN */
  vec shifted = held * 1.4426950408889634074 + magic;
  vec n = shifted - magic;
  vec r = held - n * 6.93145751953125e-1;
  r = r - n * 1.42860682030941723212e-6;
  vec p = all(1.6059043836821614599e-10); /* 1/13! down to 1/2! */
  p = p * r + 2.0876756987868098979e-9;
  p = p * r + 2.5052108385441718775e-8;
  p = p * r + 2.7557319223985890653e-7;
  p = p * r + 2.7557319223985890653e-6;
  p = p * r + 2.4801587301587301587e-5;
  p = p * r + 1.9841269841269841270e-4;
  p = p * r + 1.3888888888888888889e-3;
  p = p * r + 8.3333333333333333333e-3;
  p = p * r + 4.1666666666666666667e-2;
  p = p * r + 1.6666666666666666667e-1;
  p = p * r + 0.5;
  p = p * (r * r) + r + 1.0;
  ivec whole = as_bits(shifted) - as_bits(all(magic));
#endif
  return scaled(p, whole);
}

#endif
