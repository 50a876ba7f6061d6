/* Normal numbers in blocks of 16, the same bits as PyTorch's (kernels/random/normal.py).

   What is fused there is `fused` here, so that the compiler has no choice.

   Writes 16 numbers or more. Included by kernels.c, after random_numbers.c; called by bindings/random_numbers.c. NOTE [Kernels] in table.h. */
#define BLOCK_OF_NORMALS 16
#define NORMALS_AT_ONCE 512

#if REAL_BITS == 32
static const real CEPHES_LOG[] = {7.0376836292e-2f,  -1.1514610310e-1f, 1.1676998740e-1f, -1.2420140846e-1f, 1.4249322787e-1f,
                                  -1.6668057665e-1f, 2.0000714765e-1f,  -2.4999993993e-1f, 3.3333331174e-1f};
static const real CEPHES_SINE[] = {-1.9515295891e-4f, 8.3321608736e-3f, -1.6666654611e-1f};
static const real CEPHES_COSINE[] = {2.443315711809948e-5f, -1.388731625493765e-3f, 4.166664568298827e-2f};
static const real MINUS_EIGHTH[] = {-0.78515625f, -2.4187564849853515625e-4f, -3.77489497744594108e-8f};

#define FUSED_SERIES(coefficients, x) fused_series(coefficients, sizeof(coefficients) / sizeof(real), x)
INLINE vec fused_series(const real *coefficients, long count, vec x) {
  vec found = all(coefficients[0]);
#pragma GCC unroll 16
  for (long i = 1; i < count; i++) found = fused(found, x, all(coefficients[i]));
  return found;
}

/* log(x) of normal x > 0, by Cephes' logf */
INLINE vec cephes_log(vec x) {
  ivec bits = as_bits(x);
  vec fraction = as_vec((bits & 0x7fffff) | 0x3f000000);
  ivec small = fraction < 0.707106781186547524f;
  vec exponent = __builtin_convertvector((bits >> MANTISSA) - (EXPONENT_BIAS - 1) + small, vec);
  vec r = (fraction - 1) + choose(small, fraction, all(0)), square = r * r;
  vec value = fused(FUSED_SERIES(CEPHES_LOG, r) * r, square, exponent * -2.12194440e-4f);
  return fused(exponent, all(0.693359375f), r + fused(square, all(-0.5f), value));
}

/* sine and cosine of angles from [0, 2 pi), by Cephes' sinf and cosf */
INLINE void cephes_sine_cosine(vec angle, vec *sine, vec *cosine) {
  ivec octant = (__builtin_convertvector(angle * 1.27323954473516f, ivec) + 1) & ~1;
  vec octants = __builtin_convertvector(octant, vec), x = angle;
  for (int i = 0; i < 3; i++) x = fused(octants, all(MINUS_EIGHTH[i]), x);
  vec square = x * x;
  vec c = fused(FUSED_SERIES(CEPHES_COSINE, square) * square, square, square * -0.5f) + 1;
  vec s = fused(FUSED_SERIES(CEPHES_SINE, square) * square, x, x);
  ivec even = (octant & 2) == 0;
  vec turned = choose(even, s, c), ahead = choose(even, c, s);
  *sine = choose((octant & 4) != 0, -turned, turned);
  *cosine = choose(((octant - 2) & 4) != 0, ahead, -ahead);
}

/* From each 16 uniform numbers, eight radii from the first half and eight angles from the second. */
static void normals_of(const real *uniform, real *out, long size, double mean, double std) {
  real first[NORMALS_AT_ONCE / 2 + LANES], angle[NORMALS_AT_ONCE / 2 + LANES];
  memset(first, 0, sizeof first), memset(angle, 0, sizeof angle);
  for (long i = 0; i < size; i += 16) {
    memcpy(first + i / 2, uniform + i, 8 * sizeof(real));
    memcpy(angle + i / 2, uniform + i + 8, 8 * sizeof(real));
  }
  for (long i = 0; i < size / 2; i += LANES) {
    vec radius = root_of(cephes_log(1 - load(first + i)) * -2), sine, cosine;
    cephes_sine_cosine(load(angle + i) * (real)6.283185307179586, &sine, &cosine);
    store(first + i, fused(radius * cosine, all((real)std), all((real)mean)));
    store(angle + i, fused(radius * sine, all((real)std), all((real)mean)));
  }
  for (long i = 0; i < size; i += 16) {
    memcpy(out + i, first + i / 2, 8 * sizeof(real));
    memcpy(out + i + 8, angle + i / 2, 8 * sizeof(real));
  }
}
#else
static void normals_of(const real *uniform, real *out, long size, double mean, double std) {
  for (long i = 0; i < size; i += 16)
    for (long j = i; j < i + 8; j++) {
      double first = 1 - uniform[j], angle = 6.283185307179586 * uniform[j + 8];
      double radius = sqrt(-2.0 * log(first));
      out[j] = fma(radius * cos(angle), std, mean);
      out[j + 8] = fma(radius * sin(angle), std, mean);
    }
}
#endif

/* The last 16 are made anew where a block would be incomplete; the numbers drawn for it are spent all the same. */
static void N(random_normals)(uint32_t *state, double mean, double std, void *out_, long size) {
  real *out = out_, uniform[NORMALS_AT_ONCE];
  long whole = size / BLOCK_OF_NORMALS * BLOCK_OF_NORMALS;
  for (long at = 0, count; at < whole; at += count) {
    count = whole - at < NORMALS_AT_ONCE ? whole - at : NORMALS_AT_ONCE;
    N(random_units)(state, uniform, count);
    normals_of(uniform, out + at, count, mean, std);
  }
  if (whole == size) return;
  N(random_units)(state, uniform, size - whole);
  N(random_units)(state, uniform, BLOCK_OF_NORMALS);
  normals_of(uniform, out + size - BLOCK_OF_NORMALS, BLOCK_OF_NORMALS, mean, std);
}
