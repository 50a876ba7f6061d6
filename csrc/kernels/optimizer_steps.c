/* Steps of optimizers, each one pass over memory.

   A step is written for n numbers from the i-th on, n being LANES but at the end. `a` are its arrays and `o` its
   options, in the order of its reference; the last two options are mostly the sign of the gradient and the weight
   decay.

   Arrays are of one size and do not overlap in part. Included by kernels.c; called by bindings/optimizer_steps.c. NOTE [Kernels] in
   table.h. */

INLINE vec take(const real *p, long n) { return n == LANES ? load(p) : load_part(p, n, 0); }
INLINE void put(real *p, vec v, long n) {
  if (n == LANES)
    store(p, v);
  else
    store_part(p, v, n);
}

/* The larger of two, NaN where one is. */
INLINE vec larger_or_nan(vec a, vec b) { return choose(is_nan(a), a, larger(a, b)); }

INLINE vec gradient(const real *at, long n, vec values, double sign, double decay) {
  vec grad = take(at, n) * (real)sign;
  return decay != 0 ? grad + (real)decay * values : grad;
}

/* average + share (value - average), written. */
INLINE vec average(real *at, long n, vec value, double share) {
  vec found = take(at, n);
  found += (real)share * (value - found);
  put(at, found, n);
  return found;
}

/* kept average + (1 - kept) value squared, written. */
INLINE vec average_of_squares(real *at, long n, vec value, double kept) {
  vec found = take(at, n) * (real)kept + (real)(1 - kept) * value * value;
  put(at, found, n);
  return found;
}

/* rate, momentum, share, nesterov, sign, decay */
INLINE void sgd_at(real *const *a, const double *o, long i, long n) {
  vec values = take(a[0] + i, n), grad = gradient(a[1] + i, n, values, o[4], o[5]);
  if (a[2]) {
    vec velocity = (real)o[1] * take(a[2] + i, n) + (real)o[2] * grad;
    put(a[2] + i, velocity, n);
    grad = o[3] != 0 ? grad + (real)o[1] * velocity : velocity;
  }
  put(a[0] + i, values - (real)o[0] * grad, n);
}

/* size, share, kept, eps, scale, shrink, sign, decay */
INLINE void adam_at(real *const *a, const double *o, long i, long n) {
  vec values = take(a[0] + i, n), grad = gradient(a[1] + i, n, values, o[6], o[7]);
  vec mean = average(a[2] + i, n, grad, o[1]), square = average_of_squares(a[3] + i, n, grad, o[2]);
  if (a[4]) {
    square = larger_or_nan(take(a[4] + i, n), square);
    put(a[4] + i, square, n);
  }
  vec change = mean / (root_of(square) * (real)o[4] + (real)o[3]);
  put(a[0] + i, values * (real)o[5] - (real)o[0] * change, n);
}

/* of_grad, of_mean, share, kept, eps, scale, shrink, sign, decay */
INLINE void nadam_at(real *const *a, const double *o, long i, long n) {
  vec values = take(a[0] + i, n), grad = gradient(a[1] + i, n, values, o[7], o[8]);
  vec mean = average(a[2] + i, n, grad, o[2]), square = average_of_squares(a[3] + i, n, grad, o[3]);
  vec change = ((real)o[0] * grad + (real)o[1] * mean) / (root_of(square) * (real)o[5] + (real)o[4]);
  put(a[0] + i, values * (real)o[6] - change, n);
}

/* size, share, kept, eps, rectified, shrink, sign, decay */
INLINE void radam_at(real *const *a, const double *o, long i, long n) {
  vec values = take(a[0] + i, n), grad = gradient(a[1] + i, n, values, o[6], o[7]);
  vec mean = average(a[2] + i, n, grad, o[1]), square = average_of_squares(a[3] + i, n, grad, o[2]);
  vec change = (real)o[0] * mean;
  if (o[4] != 0) change *= (real)o[4] / (root_of(square) + (real)o[3]);
  put(a[0] + i, values * (real)o[5] - change, n);
}

/* size, share, kept, eps, sign, decay */
INLINE void adamax_at(real *const *a, const double *o, long i, long n) {
  vec values = take(a[0] + i, n), grad = gradient(a[1] + i, n, values, o[4], o[5]);
  vec mean = average(a[2] + i, n, grad, o[1]);
  vec largest = larger_or_nan(take(a[3] + i, n) * (real)o[2], absolute(grad) + (real)o[3]);
  put(a[3] + i, largest, n);
  put(a[0] + i, values - (real)o[0] * (mean / largest), n);
}

/* rate, eps, sign, decay */
INLINE void adagrad_at(real *const *a, const double *o, long i, long n) {
  vec values = take(a[0] + i, n), grad = gradient(a[1] + i, n, values, o[2], o[3]);
  vec total = take(a[2] + i, n) + grad * grad;
  put(a[2] + i, total, n);
  put(a[0] + i, values - (real)o[0] * (grad / (root_of(total) + (real)o[1])), n);
}

/* rate, kept, eps, momentum, sign, decay; the state: squares, velocity, mean */
INLINE void rmsprop_at(real *const *a, const double *o, long i, long n) {
  vec values = take(a[0] + i, n), grad = gradient(a[1] + i, n, values, o[4], o[5]);
  vec square = average_of_squares(a[2] + i, n, grad, o[1]);
  if (a[4]) {
    vec mean = average(a[4] + i, n, grad, 1 - o[1]);
    square -= mean * mean;
  }
  vec change = grad / (root_of(square) + (real)o[2]);
  if (a[3]) {
    change += (real)o[3] * take(a[3] + i, n);
    put(a[3] + i, change, n);
  }
  put(a[0] + i, values - (real)o[0] * change, n);
}

/* rate, kept, eps, sign, decay */
INLINE void adadelta_at(real *const *a, const double *o, long i, long n) {
  vec values = take(a[0] + i, n), grad = gradient(a[1] + i, n, values, o[3], o[4]);
  vec square = average_of_squares(a[2] + i, n, grad, o[1]);
  vec change = root_of(take(a[3] + i, n) + (real)o[2]) / root_of(square + (real)o[2]) * grad;
  average_of_squares(a[3] + i, n, change, o[1]);
  put(a[0] + i, values - (real)o[0] * change, n);
}

/* rate, shrink, share, sign, decay */
INLINE void asgd_at(real *const *a, const double *o, long i, long n) {
  vec values = take(a[0] + i, n), grad = gradient(a[1] + i, n, values, o[3], o[4]);
  values = values * (real)o[1] - (real)o[0] * grad;
  put(a[0] + i, values, n);
  if (o[2] == 1)
    put(a[2] + i, values, n);
  else
    average(a[2] + i, n, values, o[2]);
}

/* shrink, grow, smallest, largest, sign; the state: the gradient before, the sizes */
INLINE void rprop_at(real *const *a, const double *o, long i, long n) {
  vec values = take(a[0] + i, n), grad = take(a[1] + i, n) * (real)o[4], none = all(0);
  vec turn = grad * take(a[2] + i, n), sizes = take(a[3] + i, n);
  sizes *= choose(turn > 0, all((real)o[1]), choose(turn < 0, all((real)o[0]), all(1)));
  sizes = smaller(all((real)o[3]), larger(all((real)o[2]), sizes));
  put(a[3] + i, sizes, n);
  grad = choose(turn < 0, none, grad);
  put(a[2] + i, grad, n);
  put(a[0] + i, values - choose(grad > 0, sizes, choose(grad < 0, -sizes, none)), n);
}

/* factor */
INLINE void scale_at(real *const *a, const double *o, long i, long n) {
  put(a[0] + i, take(a[0] + i, n) * (real)o[0], n);
}

/* Copies of pointers and options tell the compiler that no write changes them. */
#define WHOLE_STEP(name, at)                                                                     \
  static void N(name)(void *const *arrays, const double *options, long begin, long end) {        \
    real *a[STEP_ARRAYS];                                                                        \
    double o[STEP_OPTIONS];                                                                      \
    for (int k = 0; k < STEP_ARRAYS; k++) a[k] = arrays[k];                                      \
    for (int k = 0; k < STEP_OPTIONS; k++) o[k] = options[k];                                    \
    for (; begin + LANES <= end; begin += LANES) at(a, o, begin, LANES);                      \
    if (begin < end) at(a, o, begin, end - begin);                                            \
  }
WHOLE_STEP(sgd_step, sgd_at)
WHOLE_STEP(adam_step, adam_at)
WHOLE_STEP(nadam_step, nadam_at)
WHOLE_STEP(radam_step, radam_at)
WHOLE_STEP(adamax_step, adamax_at)
WHOLE_STEP(adagrad_step, adagrad_at)
WHOLE_STEP(rmsprop_step, rmsprop_at)
WHOLE_STEP(adadelta_step, adadelta_at)
WHOLE_STEP(asgd_step, asgd_at)
WHOLE_STEP(rprop_step, rprop_at)
WHOLE_STEP(scale_in_place, scale_at)
#undef WHOLE_STEP

/* A few hundred squares in vectors, and their sums in double, so that no digits are lost. */
static double N(sum_of_squares)(const void *x_, long size) {
  const real *x = x_;
  double total = 0;
  for (long i = 0; i < size;) {
    long end = size - i > 64 * LANES ? i + 64 * LANES : size;
    vec sum[4] = {all(0), all(0), all(0), all(0)};
    for (; i + 4 * LANES <= end; i += 4 * LANES)
      for (int k = 0; k < 4; k++) sum[k] += load(x + i + k * LANES) * load(x + i + k * LANES);
    for (; i < end; i += LANES) {
      vec last = take(x + i, end - i < LANES ? end - i : LANES);
      sum[0] += last * last;
    }
    total += (double)sum_of(sum[0] + sum[1] + (sum[2] + sum[3]));
  }
  return total;
}
