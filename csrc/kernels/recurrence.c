/* The gates of recurrent layers, a step at a time.

   Written for n numbers from the j-th of a row on; a gate of a row is `size` numbers, and its gates lie side by side.

   All arrays have as many rows. Included by kernels.c, after optimizer_steps.c; called by bindings/recurrence.c. NOTE [Kernels] in
   table.h. */

/* gates (4), sums (4), cells, bent, out */
INLINE void lstm_at(real *const *a, long size, long row, long j, long n) {
  real *gates = a[0] + row * 4 * size + j, *at = a[2] + row * size + j;
  const real *sums = a[1] + row * 4 * size + j;
  vec i = sigmoid_of(take(gates, n) + take(sums, n));
  vec f = sigmoid_of(take(gates + size, n) + take(sums + size, n));
  vec g = tanh_of(take(gates + 2 * size, n) + take(sums + 2 * size, n));
  vec o = sigmoid_of(take(gates + 3 * size, n) + take(sums + 3 * size, n));
  vec cell = f * take(at, n) + i * g, bent = tanh_of(cell);
  put(gates, i, n), put(gates + size, f, n), put(gates + 2 * size, g, n), put(gates + 3 * size, o, n);
  put(at, cell, n), put(a[3] + row * size + j, bent, n), put(a[4] + row * size + j, o * bent, n);
}

/* slope, cell_slope, gates (4), before, bent, found (4) */
INLINE void lstm_gradient_at(real *const *a, long size, long row, long j, long n) {
  const real *gates = a[2] + row * 4 * size + j;
  real *cell_slope = a[1] + row * size + j, *found = a[5] + row * 4 * size + j;
  vec i = take(gates, n), f = take(gates + size, n), g = take(gates + 2 * size, n), o = take(gates + 3 * size, n);
  vec slope = take(a[0] + row * size + j, n), bent = take(a[4] + row * size + j, n);
  vec cell = take(cell_slope, n) + slope * o * (1 - bent * bent);
  put(found, cell * g * i * (1 - i), n);
  put(found + size, cell * take(a[3] + row * size + j, n) * f * (1 - f), n);
  put(found + 2 * size, cell * i * (1 - g * g), n);
  put(found + 3 * size, slope * bent * o * (1 - o), n);
  put(cell_slope, cell * f, n);
}

/* gates (3), sums (3), state, inner, out */
INLINE void gru_at(real *const *a, long size, long row, long j, long n) {
  real *gates = a[0] + row * 3 * size + j, *at = a[2] + row * size + j;
  const real *sums = a[1] + row * 3 * size + j;
  vec inner = take(sums + 2 * size, n), state = take(at, n);
  vec r = sigmoid_of(take(gates, n) + take(sums, n)), z = sigmoid_of(take(gates + size, n) + take(sums + size, n));
  vec fresh = tanh_of(take(gates + 2 * size, n) + r * inner);
  state = fresh + z * (state - fresh);
  put(gates, r, n), put(gates + size, z, n), put(gates + 2 * size, fresh, n);
  put(at, state, n), put(a[3] + row * size + j, inner, n), put(a[4] + row * size + j, state, n);
}

/* slope, gates (3), before, inner, rows (3), sums (3), passed */
INLINE void gru_gradient_at(real *const *a, long size, long row, long j, long n) {
  const real *gates = a[1] + row * 3 * size + j;
  real *rows = a[4] + row * 3 * size + j, *sums = a[5] + row * 3 * size + j;
  vec r = take(gates, n), z = take(gates + size, n), fresh = take(gates + 2 * size, n);
  vec slope = take(a[0] + row * size + j, n), inner = take(a[3] + row * size + j, n);
  vec to_fresh = slope * (1 - z) * (1 - fresh * fresh), to_r = to_fresh * inner * r * (1 - r);
  vec to_z = slope * (take(a[2] + row * size + j, n) - fresh) * z * (1 - z);
  put(rows, to_r, n), put(rows + size, to_z, n), put(rows + 2 * size, to_fresh, n);
  put(sums, to_r, n), put(sums + size, to_z, n), put(sums + 2 * size, to_fresh * r, n);
  put(a[6] + row * size + j, slope * z, n);
}

#define WHOLE_ROWS(name, at)                                                     \
  static void N(name)(void *const *arrays, long size, long begin, long end) {    \
    real *a[ROW_ARRAYS];                                                       \
    for (int k = 0; k < ROW_ARRAYS; k++) a[k] = arrays[k];                     \
    for (; begin < end; begin++) {                                               \
      long j = 0;                                                                \
      for (; j + LANES <= size; j += LANES) at(a, size, begin, j, LANES);        \
      if (j < size) at(a, size, begin, j, size - j);                             \
    }                                                                            \
  }
WHOLE_ROWS(lstm_step, lstm_at)
WHOLE_ROWS(lstm_step_gradient, lstm_gradient_at)
WHOLE_ROWS(gru_step, gru_at)
WHOLE_ROWS(gru_step_gradient, gru_gradient_at)
#undef WHOLE_ROWS
