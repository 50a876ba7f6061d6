/* Functions of vectors beyond exp: logarithms, hyperbolic tangent, the normal distribution, sigmoid.

   Each is right to about 2 units in the last place, without branches, for every number: NaN stays NaN, infinities and
   the edges of the domain give what C's library gives. The series are minimax fits, the highest power first. For
   kernels only, which have included simd/simd.h; touches no memory. */
#ifndef SIMD_MATH_H
#define SIMD_MATH_H

#include "simd.h"

/* (exp(r) - 1 - r) / r^2 on |r| <= 0.4. TAIL_SERIES and ERF_SERIES: see normal_tail and erf_of. */
#if REAL_BITS == 32
static const real EXP_SERIES[] = {
    0.000198631112f, 0.00139480263f, 0.00833338127f, 0.0416663149f, 0.166666664f, 0.500000003f};
static const real TAIL_SERIES[] = {
    0.000108692526f, 0.000418321914f, -0.000495038858f, -0.00317282743f, 0.00649372663f, 0.0174058209f,
    -0.116053175f, 0.315425091f, -0.565561739f, 0.744416074f};
static const real ERF_SERIES[] = {
    7.85386063e-05f, -0.000801019366f, 0.00518832773f, -0.026853812f, 0.112835852f, -0.376126258f, 1.12837917f};
#else
static const real EXP_SERIES[] = {
    2.0889642489862235e-09, 2.5106241020137478e-08, 2.7557350806536484e-07, 2.7557252926514352e-06,
    2.4801587242358079e-05, 0.00019841269876778812, 0.0013888888888920344, 0.0083333333333255738,
    0.041666666666666616, 0.16666666666666671, 0.5};
static const real TAIL_SERIES[] = {
    6.6459404474365394e-10, 4.6370257769012374e-09, 6.3039750216357893e-12, -4.2752508316384906e-08,
    1.0050812465175824e-08, 3.1007857770595459e-07, -4.3140057326981067e-07, -1.7995668081215748e-06,
    6.7972608783668532e-06, 1.0755529828836932e-06, -6.4752287537022261e-05, 0.00018136042597731409,
    3.2870079331010025e-05, -0.0021316052109432719, 0.010029820632621013, -0.030985315507591326,
    0.075171915669559178, -0.15268023206448952, 0.26797424584163093, -0.41390358577559061, 0.56896889181478405,
    -0.70100902959086553, 0.77735177189336224};
static const real ERF_SERIES[] = {
    -7.7794657295499956e-10, 1.37109789045861e-08, -1.6206313408057644e-07, 1.6447131524503547e-06,
    -1.4924712298094114e-05, 0.00012055293576686918, -0.00085483259293068288, 0.0052239776061182956,
    -0.026866170643111441, 0.11283791670944185, -0.37612638903183521, 1.1283791670955126};
#endif

/* log(1 + f) by s = f / (2 + f): its odd series beyond 2 s, for f from sqrt(1/2) - 1 to sqrt(2) - 1 (source: Sun's
   fdlibm, e_log.c and e_logf.c) and for f from 0 to 1. */
#if REAL_BITS == 32
static const real LOG_SERIES[] = {0.24279078841f, 0.28498786688f, 0.40000972152f, 0.66666662693f};
static const real HALF_LOG_SERIES[] = {0.232335643f, 0.217045325f, 0.28592499f, 0.399997032f, 0.666666673f};
static const real LOG_2[] = {6.9313812256e-01f, 9.0580006145e-06f}; /* in two pieces, the first of few digits */
static const real LOG_2_CUT[] = {0.693145751953125f, 1.42860682030941723212e-6f};
#define MAGIC 12582912.0f /* what is added to it becomes a whole number, in the last bits */
#define LEAST_NORMAL FLT_MIN
#define LOW_BITS 12       /* without them a number's square is exact */
#define FLAT_TANH 20      /* 1 - 2 / (exp(this) + 1) is 1 */
#define END_OF_TAIL 15    /* the normal tail beyond is 0 */
#else
static const real LOG_SERIES[] = {1.479819860511658591e-01, 1.531383769920937332e-01, 1.818357216161805012e-01,
                                  2.222219843214978396e-01, 2.857142874366239149e-01, 3.999999999940941908e-01,
                                  6.666666666666735130e-01};
static const real HALF_LOG_SERIES[] = {
    0.15638838477165257, 0.074875624455227052, 0.10846258010948219, 0.11734138243026651, 0.13335189727512237,
    0.15384543423928793, 0.18181819914009015, 0.22222222197963523, 0.28571428571602459, 0.39999999999999514,
    0.66666666666666663};
static const real LOG_2[] = {6.93147180369123816490e-01, 1.90821492927058770002e-10};
static const real LOG_2_CUT[] = {6.93145751953125e-1, 1.42860682030941723212e-6};
#define MAGIC 6755399441055744.0
#define LEAST_NORMAL DBL_MIN
#define LOW_BITS 27
#define FLAT_TANH 40
#define END_OF_TAIL 40
#endif

/* A series in x, by Horner's rule. */
#define SERIES(coefficients, x) series(coefficients, sizeof(coefficients) / sizeof(real), x)
INLINE vec series(const real *coefficients, long count, vec x) {
  vec found = all(coefficients[0]);
#pragma GCC unroll 32
  for (long i = 1; i < count; i++) found = found * x + coefficients[i];
  return found;
}

INLINE vec not_above(vec x, real most) { return smaller(all(most), x); } /* NaN stays NaN */
INLINE vec not_below(vec x, real least) { return larger(all(least), x); }

/* x + low = n ln 2 + r: n as the last bits of the result's second part, r its first. */
struct reduced {
  vec r;
  ivec n;
};
INLINE struct reduced reduced_of(vec x, vec low) {
  vec shifted = x * (real)1.44269504088896340736 + MAGIC;
  vec n = shifted - MAGIC;
  vec r = x - n * LOG_2_CUT[0];
  r = r - n * LOG_2_CUT[1] + low;
  return (struct reduced){r, as_bits(shifted) - as_bits(all(MAGIC))};
}
/* exp(r) - 1 */
INLINE vec bend_of(vec r) { return SERIES(EXP_SERIES, r) * (r * r) + r; }

/* exp(x + low) for x from -2 ln(1 / least number) to 0. */
INLINE vec exp_down(vec x, vec low) {
  struct reduced part = reduced_of(x, low);
  return scaled(bend_of(part.r) + 1, part.n);
}

/* exp(x) - 1 for x from 0 to FLAT_TANH. */
INLINE vec growth_of(vec x) {
  struct reduced part = reduced_of(x, all(0));
  vec power = as_vec((part.n + EXPONENT_BIAS) << MANTISSA);
  return power * bend_of(part.r) + (power - 1);
}

INLINE vec expm1_of(vec x) {
#if REAL_BITS == 32
  const real least = -30, most = 88.8f;
#else
  const real least = -60, most = 709.9;
#endif
  struct reduced part = reduced_of(not_above(not_below(x, least), most), all(0));
  vec half = as_vec((part.n - 1 + EXPONENT_BIAS) << MANTISSA); /* 2^n itself may be too large */
  vec found = (half * bend_of(part.r) + (half - (real)0.5)) * 2;
  found = choose(x > most, all((real)INFINITY), found);
  return choose(absolute(x) < EPSILON / 2, x, choose(is_nan(x), x, found));
}

INLINE vec tanh_of(vec x) {
  vec growth = growth_of(not_above(absolute(x) * 2, FLAT_TANH));
  return sign_of(x, growth / (growth + 2));
}

INLINE vec sigmoid_of(vec x) { return 1 / (1 + exp_of(-x)); }

INLINE vec log_of(vec x) {
  ivec tiny = x < LEAST_NORMAL;
  vec held = choose(tiny, x * (real)((uint64_t)1 << MANTISSA), x);
  ivec root_half = as_bits(all((real)0.70710678118654752440)), bits = as_bits(held) - root_half;
  ivec exponent = (bits >> MANTISSA) - (tiny & MANTISSA);
  vec f = as_vec((bits & (((integer)1 << MANTISSA) - 1)) + root_half) - 1;
  vec n = as_vec(exponent + as_bits(all(MAGIC))) - MAGIC;
  vec s = f / (f + 2), z = s * s, half = f * f * (real)0.5;
  vec rest = SERIES(LOG_SERIES, z) * z;
  vec found = n * LOG_2[0] - ((half - (s * (half + rest) + n * LOG_2[1])) - f);
  found = choose(x > 0, found, choose(x == 0, all(-(real)INFINITY), all((real)NAN)));
  return choose((x == (real)INFINITY) | is_nan(x), x, found);
}

/* log(1 + x): what rounding 1 + x lost is added, divided by it. */
INLINE vec log1p_of(vec x) {
  vec whole = x + 1, found = log_of(whole);
  ivec ordinary = (whole > 0) & (whole < (real)INFINITY);
  found = choose(ordinary, found + (x - (whole - 1)) / whole, found);
  return choose(absolute(x) < EPSILON / 2, x, found);
}

/* log(1 + exp(-|x|)), the softplus less its kinked line */
INLINE vec rounding_of_kink(vec x) {
  vec e = exp_of(-absolute(x)), s = e / (e + 2), z = s * s;
  return SERIES(HALF_LOG_SERIES, z) * (z * s) + 2 * s;
}
INLINE vec softplus_of(vec x) { return larger(all(0), x) + rounding_of_kink(x); }
INLINE vec logsigmoid_of(vec x) { return smaller(all(0), x) - rounding_of_kink(x); }

/* The probability that a standard normal variable lies beyond t >= 0, and exp(-t^2 / 2).

       exp(-t^2 / 2) / (t + k) * a series in q = (t - k) / (t + k)

   t^2 is taken in two pieces, so that its rounding does not grow with t. */
INLINE vec normal_tail(vec t, vec *bell) {
  const real k = REAL_BITS == 32 ? (real)3.5 : 6;
  t = not_above(t, END_OF_TAIL);
  vec high = as_vec(as_bits(t) & -((integer)1 << LOW_BITS));
  vec e = exp_down(high * high * (real)-0.5, (high - t) * (high + t) * (real)0.5);
  vec inverse = 1 / (t + k);
  *bell = e;
  return SERIES(TAIL_SERIES, (t - k) * inverse) * (e * inverse);
}

/* Near 0 a series in x^2, times x; from there on 1 less the tail. */
INLINE vec erf_of(vec x) {
  vec size = absolute(x), bell;
  vec far = 1 - 2 * normal_tail(size * (real)1.41421356237309504880, &bell);
  return sign_of(x, choose(size < 1, SERIES(ERF_SERIES, x * x) * size, far));
}

/* The normal distribution function, and its density. */
struct normal {
  vec below, density;
};
INLINE struct normal normal_of(vec x) {
  vec bell, tail = normal_tail(absolute(x), &bell);
  return (struct normal){choose(x > 0, 1 - tail, tail), bell * (real)0.39894228040143267794};
}

#endif
