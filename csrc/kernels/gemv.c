/* A matrix times a vector, and sums of columns.

   Included by kernels.c; called by bindings/matrices.c and gemm_driver.c. NOTE [Kernels] in table.h. */

#define ROWS_AT_ONCE 64 /* are summed before they are added to the others, so that errors grow slower than the rows */

/* Sum the columns of a matrix, `columns` of them, in rows that are `width` apart. */
static void N(column_sums)(const void *x_, void *out_, long rows, long columns, long width) {
  const real *x = x_;
  real *out = out_;
  long j = 0;
  for (; j + LANES <= columns; j += LANES) {
    vec total = all(0);
    for (long top = 0; top < rows; top += ROWS_AT_ONCE) {
      const long end = top + ROWS_AT_ONCE < rows ? top + ROWS_AT_ONCE : rows;
      vec even = all(0), odd = all(0);
      long i = top;
      for (; i + 1 < end; i += 2) {
        even += load(x + i * width + j);
        odd += load(x + (i + 1) * width + j);
      }
      if (i < end) even += load(x + i * width + j);
      total += even + odd;
    }
    store(out + j, total);
  }
  const long rest = columns - j;
  real total[LANES] = {0};
  for (long top = 0; rest && top < rows; top += ROWS_AT_ONCE) {
    real part[LANES] = {0};
    for (long i = top; i < rows && i < top + ROWS_AT_ONCE; i++)
      for (long c = 0; c < rest; c++) part[c] += x[i * width + j + c];
    for (long c = 0; c < rest; c++) total[c] += part[c];
  }
  memcpy(out + j, total, (size_t)rest * sizeof(real));
}

/* Numbers begin to end of a matrix times a vector: its rows, `row` numbers apart, by v, four at a time. */
static void N(row_dots)(const void *a_, long row, const void *v_, const void *bias_, void *out_, long begin, long end, long k) {
  const real *v = v_, *bias = bias_;
  real *out = out_;
  for (long i = begin; i < end; i += 4) {
    const long some = end - i < 4 ? end - i : 4;
    const real *a[4];
    for (long r = 0; r < 4; r++) a[r] = (const real *)a_ + (i + (r < some ? r : 0)) * row;
    vec even[4] = {all(0), all(0), all(0), all(0)}, odd[4] = {all(0), all(0), all(0), all(0)};
    long j = 0;
    for (; j + 2 * LANES <= k; j += 2 * LANES) {
      const vec first = load(v + j), second = load(v + j + LANES);
#pragma GCC unroll 4
      for (long r = 0; r < 4; r++) {
        even[r] += load(a[r] + j) * first;
        odd[r] += load(a[r] + j + LANES) * second;
      }
    }
    for (long r = 0; r < some; r++) {
      real total = sum_of(even[r] + odd[r]);
      for (long rest = j; rest < k; rest++) total += a[r][rest] * v[rest];
      out[i + r] = total + (bias ? bias[i + r] : 0);
    }
  }
}

/* Numbers begin to end of v times a matrix whose rows are `row` numbers apart: four rows are added at a time. */
static void N(row_mix)(const void *b_, long row, const void *v_, const void *bias_, void *out_, long begin, long end, long k) {
  const real *b = b_, *v = v_, *bias = bias_;
  real *out = out_;
  for (long j = begin; j < end; j++) out[j] = bias ? bias[j] : 0;
  long i = 0;
  for (; i + 4 <= k; i += 4) {
    const real *r0 = b + i * row, *r1 = r0 + row, *r2 = r1 + row, *r3 = r2 + row;
    const real v0 = v[i], v1 = v[i + 1], v2 = v[i + 2], v3 = v[i + 3];
    long j = begin;
    for (; j + LANES <= end; j += LANES)
      store(out + j, load(out + j) + ((load(r0 + j) * v0 + load(r1 + j) * v1) + (load(r2 + j) * v2 + load(r3 + j) * v3)));
    for (; j < end; j++) out[j] += (r0[j] * v0 + r1[j] * v1) + (r2[j] * v2 + r3[j] * v3);
  }
  for (; i < k; i++)
    for (long j = begin; j < end; j++) out[j] += b[i * row + j] * v[i];
}
