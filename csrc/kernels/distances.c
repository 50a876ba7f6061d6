/* Distances between all pairs of points, and the gradients of distances.

   `p` is 1 or 2. Gradients are added to what is there. Included by kernels.c; called by bindings/distances.c. NOTE
   [Kernels] in table.h. */
#define PAIRED_AT_ONCE 4 /* vectors */

/* The distances of one point to LANES others each. */
INLINE void distance_vectors(const real *point, const real *turned, real *out, long others, long dims, long last, const int p,
                             const int vectors) {
  vec total[PAIRED_AT_ONCE];
  for (int v = 0; v < vectors; v++) total[v] = all(0);
  for (long dim = 0; dim < dims; dim++, turned += others) {
    vec here = all(point[dim]);
    for (int v = 0; v < vectors; v++) {
      vec change = here - (last ? load_first(turned, last, 0) : load(turned + v * LANES));
      total[v] = p == 2 ? total[v] + change * change : total[v] + absolute(change);
    }
  }
  for (int v = 0; v < vectors; v++) {
    vec found = p == 2 ? root_of(total[v]) : total[v];
    if (last)
      store_first(out, found, last);
    else
      store(out + v * LANES, found);
  }
}

INLINE void distances_of(const real *point, const real *turned, real *out, long others, long dims, const int p) {
  long at = 0;
  for (; at + PAIRED_AT_ONCE * LANES <= others; at += PAIRED_AT_ONCE * LANES)
    distance_vectors(point, turned + at, out + at, others, dims, 0, p, PAIRED_AT_ONCE);
  for (; at + LANES <= others; at += LANES) distance_vectors(point, turned + at, out + at, others, dims, 0, p, 1);
  if (at < others) distance_vectors(point, turned + at, out + at, others, dims, others - at, p, 1);
}

/* Points begin to end of all batches. */
static void N(distances)(const void *x1, const void *turned_, void *out_, long begin, long end, long rows, long others,
                         long dims, int p) {
  for (long row = begin; row < end; row++) {
    const real *point = (const real *)x1 + row * dims, *turned = (const real *)turned_ + row / rows * dims * others;
    real *out = (real *)out_ + row * others;
    if (p == 2)
      distances_of(point, turned, out, others, dims, 2);
    else
      distances_of(point, turned, out, others, dims, 1);
  }
}

/* One dim's piece of the gradient of one distance: added for the one point, taken for the other. */
INLINE void push_apart(const real *a, const real *b, real *for_a, real *for_b, real weight, long dims, const int p) {
  for (long i = 0; i < dims; i += LANES) {
    long n = dims - i;
    vec change = n < LANES ? load_first(a + i, n, 0) - load_first(b + i, n, 0) : load(a + i) - load(b + i);
    if (p == 1) change = choose(change > 0, all(1), choose(change < 0, all(-1), all(0)));
    change *= weight;
    if (n < LANES) {
      store_first(for_a + i, load_first(for_a + i, n, 0) + change, n);
      store_first(for_b + i, load_first(for_b + i, n, 0) - change, n);
    } else {
      store(for_a + i, load(for_a + i) + change);
      store(for_b + i, load(for_b + i) - change);
    }
  }
}

/* Batches begin to end; the gradients are added to what is there. */
static void N(distance_gradients)(const void *grad_, const void *x1_, const void *x2_, const void *out_, void *gradient1_,
                               void *gradient2_, long begin, long end, long rows, long others, long dims, int p) {
  for (long batch = begin; batch < end; batch++) {
    const real *x1 = (const real *)x1_ + batch * rows * dims, *x2 = (const real *)x2_ + batch * others * dims;
    const real *grad = (const real *)grad_ + batch * rows * others, *out = (const real *)out_ + batch * rows * others;
    real *gradient1 = (real *)gradient1_ + batch * rows * dims, *gradient2 = (real *)gradient2_ + batch * others * dims;
    for (long i = 0; i < rows; i++)
      for (long j = 0; j < others; j++) {
        long pair = i * others + j;
        if (p == 1)
          push_apart(x1 + i * dims, x2 + j * dims, gradient1 + i * dims, gradient2 + j * dims, grad[pair], dims, 1);
        else if (out[pair] != 0)
          push_apart(x1 + i * dims, x2 + j * dims, gradient1 + i * dims, gradient2 + j * dims, grad[pair] / out[pair], dims, 2);
      }
  }
}
