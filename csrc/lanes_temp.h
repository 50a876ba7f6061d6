/* stand-in until lanes_math.h is there */
INLINE vec tanh_of(vec x) {
  vec a = absolute(x), z = x * x;
#if REAL_BITS == 32
  vec p = all(-5.70498872745e-3f);
  p = p * z + 2.06390887954e-2f;
  p = p * z - 5.37397155531e-2f;
  p = p * z + 1.33314422036e-1f;
  p = p * z - 3.33332819422e-1f;
  vec small = x * z * p + x;
#else
  vec p = all(-9.64399179425052238628e-1);
  p = p * z - 9.92877231001918586564e1;
  p = p * z - 1.61468768441708447952e3;
  vec q = z + 1.12811678491632931402e2;
  q = q * z + 2.23548839060100448583e3;
  q = q * z + 4.84406305325125486048e3;
  vec small = x * z * (p / q) + x;
#endif
  vec big = sign_of(x, 1 - 2 / (exp_of(a + a) + 1));
  return choose(a < (real)0.625, small, choose(is_nan(x), x, big));
}
INLINE vec log_of(vec x) {
  for (long i = 0; i < LANES; i++) x[i] = REAL_BITS == 32 ? logf(x[i]) : log(x[i]);
  return x;
}
