/* LU factors with partial pivoting, some columns of each matrix at a time.

   The columns lie in the matrix; rows are chosen by what the matrix holds, never by what `pivots` held before.
   Included by kernels.c; called by bindings/lu_factors.c. NOTE [Kernels] in table.h. */

INLINE void exchange_rows(real *a, real *b, long size) {
  for (long i = 0; i < size; i++) {
    real kept = a[i];
    a[i] = b[i], b[i] = kept;
  }
}

/* row -= factor * other */
INLINE void take_row(real *row, const real *other, real factor, long size) {
  long i = 0;
  for (; i + LANES <= size; i += LANES) store(row + i, load(row + i) - factor * load(other + i));
  if (i < size) store_first(row + i, load_first(row + i, size - i, 0) - factor * load_first(other + i, size - i, 0), size - i);
}

INLINE long largest_below(const real *a, long column, long rows, long columns) {
  long found = column;
  for (long row = column; row < rows; row++) {
    real size = a[row * columns + column] < 0 ? -a[row * columns + column] : a[row * columns + column];
    real most = a[found * columns + column] < 0 ? -a[found * columns + column] : a[found * columns + column];
    if (most != most) break; /* NaN is the largest, as NumPy has it */
    if (size > most || size != size) found = row;
  }
  return found;
}

/* Bring the largest of each column from `start` to `stop` to the diagonal and eliminate below it, up to `stop`. */
static void N(eliminate_columns)(void *work, int32_t *pivots, long begin, long end, long rows, long columns, long count,
                                 long start, long stop) {
  for (long matrix = begin; matrix < end; matrix++) {
    real *a = (real *)work + matrix * rows * columns;
    for (long column = start; column < stop; column++) {
      long pivot = largest_below(a, column, rows, columns);
      real *head = a + column * columns;
      pivots[matrix * count + column] = (int32_t)(pivot + 1);
      if (pivot != column) exchange_rows(head, a + pivot * columns, columns);
      if (head[column] == 0) continue;
      for (long row = column + 1; row < rows; row++) {
        real *below = a + row * columns, factor = below[column] / head[column];
        below[column] = factor;
        take_row(below + column + 1, head + column + 1, factor, stop - column - 1);
      }
    }
  }
}
