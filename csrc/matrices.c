/* What goes with products of matrices. Included by kernels.c. */

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
