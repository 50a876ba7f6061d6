/* Sums, differences, products and quotients of two arrays; sums over dims.

   Operands are as large as the result says, or one row, one column, one number of it, as `struct operand` describes.
   Included by kernels.c; called by bindings/arithmetic.c. NOTE [Kernels] in table.h. */

#define OPERATOR(name, operator) \
  static void name##_row(const real *a, int a_single, const real *b, int b_single, real *out, long size) { \
    long i = 0; \
    if (a_single) { \
      vec first = all(*a); \
      for (; i + LANES <= size; i += LANES) store(out + i, first operator load(b + i)); \
      for (; i < size; i++) out[i] = *a operator b[i]; \
    } else if (b_single) { \
      vec second = all(*b); \
      for (; i + LANES <= size; i += LANES) store(out + i, load(a + i) operator second); \
      for (; i < size; i++) out[i] = a[i] operator *b; \
    } else { \
      for (; i + LANES <= size; i += LANES) store(out + i, load(a + i) operator load(b + i)); \
      for (; i < size; i++) out[i] = a[i] operator b[i]; \
    } \
  } \
  static void N(name) OF_TWO { \
    const real *first = (const real *)a->at, *second = (const real *)b->at; \
    for (long row = 0; row < rows; row++, first += a->step, second += b->step) \
      name##_row(first, a->single, second, b->single, (real *)out + row * size, size); \
  }

OPERATOR(plus, +)
OPERATOR(minus, -)
OPERATOR(times, *)
OPERATOR(over, /)

/* NOTE [Exact sums]
   Blocks of numbers go through eight vectors, so that few roundings stand in a row; the sums of blocks are added in
   double, and what each of these additions lost is added at the end (Neumaier, 1974). Which numbers go together depends
   on sizes and on the vectors' width only, never on threads. */
#define SUM_BLOCK (64 * LANES)

INLINE double block_sum(const real *x) {
  vec part[8];
  for (int k = 0; k < 8; k++) part[k] = load(x + k * LANES);
  for (int i = 1; i < 8; i++)
    for (int k = 0; k < 8; k++) part[k] += load(x + (8 * i + k) * LANES);
  return (double)sum_of(((part[0] + part[1]) + (part[2] + part[3])) + ((part[4] + part[5]) + (part[6] + part[7])));
}

static double N(exact_sum)(const void *x_, long size) {
  const real *x = x_;
  double sum = 0, lost = 0;
  while (size > 0) {
    double next = 0;
    if (size >= SUM_BLOCK) {
      next = block_sum(x);
      x += SUM_BLOCK, size -= SUM_BLOCK;
    } else {
      vec part = all(0);
      for (; size >= LANES; x += LANES, size -= LANES) part += load(x);
      next = (double)sum_of(part);
      real rest = 0;
      for (; size > 0; size--) rest += *x++;
      next += (double)rest;
    }
    double total = sum + next;
    lost += fabs(sum) >= fabs(next) ? (sum - total) + next : (next - total) + sum;
    sum = total;
  }
  return isfinite(sum) ? sum + lost : sum;
}

static void N(row_totals)(const void *x, void *out, long rows, long size) {
  for (long row = 0; row < rows; row++) ((real *)out)[row] = (real)N(exact_sum)((const real *)x + row * size, size);
}

#define STRIP 1024 /* columns; their sums stay in the first cache */

/* Add rows [0, rows) of a strip to its sums, eight rows at a time. */
INLINE void add_rows(const real *x, real *sums, long rows, long width, long size) {
  long row = 0;
  for (; row + 8 <= rows; row += 8, x += 8 * size) {
    long i = 0;
    for (; i + LANES <= width; i += LANES) {
      const real *p = x + i;
      vec low = (load(p) + load(p + size)) + (load(p + 2 * size) + load(p + 3 * size));
      p += 4 * size;
      vec high = (load(p) + load(p + size)) + (load(p + 2 * size) + load(p + 3 * size));
      store(sums + i, load(sums + i) + (low + high));
    }
    for (; i < width; i++) {
      const real *p = x + i;
      real low = (p[0] + p[size]) + (p[2 * size] + p[3 * size]);
      p += 4 * size;
      sums[i] += low + ((p[0] + p[size]) + (p[2 * size] + p[3 * size]));
    }
  }
  for (; row < rows; row++, x += size)
    for (long i = 0; i < width; i++) sums[i] += x[i];
}

static void N(column_totals)(const void *x_, void *out_, long rows, long size) {
  const real *x = x_;
  real *out = out_;
  for (long first = 0; first < size; first += STRIP) {
    long width = size - first < STRIP ? size - first : STRIP;
    memset(out + first, 0, (size_t)width * sizeof(real));
    add_rows(x + first, out + first, rows, width, size);
  }
}
