/* Extremes, sum, sum of squares and odd numbers of a part of an array.

   Takes any numbers, NaN and infinities too; a part is not empty. Included by kernels.c; called by bindings/summaries.c
   and core/nonfinite.c. NOTE [Kernels] in table.h. */

/* Number by number, for parts that hold NaN or infinity, or whose squares are too large for the type. */
static void N(careful_summary)(const real *x, long count, struct part_summary *found) {
  struct part_summary s = {INFINITY, -INFINITY, 0, 0, 0, 0, 0};
  for (long i = 0; i < count; i++) {
    double value = (double)x[i];
    if (value != value) {
      s.nans++;
    } else if (value > (double)REAL_MAX || value < -(double)REAL_MAX) {
      s.infs++;
    } else {
      s.least = value < s.least ? value : s.least;
      s.most = value > s.most ? value : s.most;
      s.sum += value;
      s.square += value * value;
      s.zeros += value == 0;
    }
  }
  *found = s;
}

#define TAKE(v, n) \
  do { \
    vec v_ = (v); \
    least##n = smaller(least##n, v_); \
    most##n = larger(most##n, v_); \
    sum##n += v_; \
    square##n += v_ * v_; \
    zeros##n -= (v_ == 0); \
  } while (0)

/* Two strands of vectors. A NaN or an infinity makes the sum of squares one too, and then all is done again. */
static void N(summary_of)(const void *numbers, long count, struct part_summary *found) {
  const real *x = numbers;
  if (count < 2 * LANES) {
    N(careful_summary)(x, count, found);
    return;
  }
  vec least0 = load(x), most0 = least0, least1 = least0, most1 = least0;
  vec sum0 = all(0), sum1 = sum0, square0 = sum0, square1 = sum0;
  ivec zeros0 = {0}, zeros1 = {0};
  long i = 0;
  for (; i + 2 * LANES <= count; i += 2 * LANES) {
    TAKE(load(x + i), 0);
    TAKE(load(x + i + LANES), 1);
  }
  struct part_summary rest;
  N(careful_summary)(x + i, count - i, &rest);
  double square = (double)sum_of(square0 + square1);
  if (rest.nans || rest.infs || !(square <= (double)REAL_MAX)) {
    N(careful_summary)(x, count, found);
    return;
  }
  integer counted[LANES];
  ivec zeros = zeros0 + zeros1;
  memcpy(counted, &zeros, sizeof counted);
  for (long lane = 0; lane < LANES; lane++) rest.zeros += (long)counted[lane];
  double least = -(double)largest_of(-smaller(least0, least1)), most = (double)largest_of(larger(most0, most1));
  rest.least = least < rest.least ? least : rest.least;
  rest.most = most > rest.most ? most : rest.most;
  rest.sum += (double)sum_of(sum0 + sum1);
  rest.square += square;
  *found = rest;
}
#undef TAKE

#define STRETCH 1024

/* Number by number: which nonfinite_kinds there are. */
static int N(careful_nonfinite)(const real *x, long count) {
  int found = 0;
  for (long i = 0; i < count; i++) {
    if (x[i] != x[i]) return found | FOUND_NAN;
    if (x[i] > REAL_MAX || x[i] < -REAL_MAX) found |= FOUND_INF;
  }
  return found;
}

/* 0 if all are finite, else FOUND_INF or FOUND_NAN or both (a NaN ends the search). 0 · x is NaN for whatever is odd. */
static int N(nonfinite_among)(const void *numbers, long count) {
  const real *x = numbers;
  int found = 0;
  for (long i = 0; i < count;) {
    const long begin = i, end = count - i < STRETCH ? count : i + STRETCH;
    vec zero = all(0), sum0 = zero, sum1 = zero, sum2 = zero, sum3 = zero;
    for (; i + 4 * LANES <= end; i += 4 * LANES) {
      sum0 += load(x + i) * zero;
      sum1 += load(x + i + LANES) * zero;
      sum2 += load(x + i + 2 * LANES) * zero;
      sum3 += load(x + i + 3 * LANES) * zero;
    }
    for (; i + LANES <= end; i += LANES) sum0 += load(x + i) * zero;
    real sum = sum_of((sum0 + sum1) + (sum2 + sum3));
    for (; i < end; i++) sum += x[i] * 0;
    if (sum != sum) found |= N(careful_nonfinite)(x + begin, i - begin);
    if (found & FOUND_NAN) return found;
  }
  return found;
}
#undef STRETCH
