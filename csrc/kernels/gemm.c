/* One product of matrices, C = A · B.

   A tile of C, at most TILE_ROWS rows by TILE_VECTORS vectors, is held in registers while a row of B after the other
   passes by: each number of A multiplies two vectors. So B is read along its rows. Where its rows do not lie so, or
   there are many tiles to a row, B is copied into panels of TILE_COLUMNS columns first (`pack`). A may lie anyhow; a
   few of its rows are copied where many panels pass them.

   Included by kernels.c; called by gemm_driver.c, which has made the panels, and attention.c. NOTE [Kernels] in table.h. */

#if VECTOR_BYTES == 64
#define TILE_ROWS 14 /* of 32 registers, 28 hold the tile */
#else
#define TILE_ROWS 6 /* of 16 registers, 12 hold the tile */
#endif
#define TILE_COLUMNS (2 * LANES)
#define PADDED_ROWS ((TILE_ROWS + LANES - 1) / LANES * LANES)
#define BLOCK 512        /* steps of k that are taken at once, */
#define COLUMNS_AT_ONCE (VECTOR_BYTES == 64 ? 12 * TILE_COLUMNS : 256) /* and columns, which the second cache holds beside them */
#define COPY_FROM 3      /* panels that pass a tile's rows of A, for these to be worth a copy, */
#define COPY_STEPS 128   /* and steps of k, where these lie side by side */
#define AHEAD 8          /* rows of B that are fetched before they are used, */
#define FETCHES (VECTOR_BYTES == 64) /* where a vector is a line, and a panel as large as the nearest cache */
#define UNROLL _Pragma("GCC unroll 32")

/* One tile of C: `columns` of its numbers in each row count. */
struct N(step) {
  const real *a, *b, *bias;
  real *c;
  long k, a_row, a_step, b_step, c_row, c_column, bias_row, bias_column, columns;
  int add; /* to what C holds */
};

/* --- transposing ------------------------------------------------------------------------------------------------- */

#if VECTOR_BYTES * 8 / REAL_BITS == 16
#define ZIP_LOW 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define ZIP_HIGH 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#elif VECTOR_BYTES * 8 / REAL_BITS == 8
#define ZIP_LOW 0, 8, 1, 9, 2, 10, 3, 11
#define ZIP_HIGH 4, 12, 5, 13, 6, 14, 7, 15
#elif VECTOR_BYTES * 8 / REAL_BITS == 4
#define ZIP_LOW 0, 4, 1, 5
#define ZIP_HIGH 2, 6, 3, 7
#else
#define ZIP_LOW 0, 2
#define ZIP_HIGH 1, 3
#endif

/* Transpose LANES vectors in place: each round moves one bit of the column's number to the row's, and one back. */
INLINE void N(transpose)(vec *rows) {
  UNROLL for (long round = 1; round < LANES; round *= 2) {
    vec next[LANES];
    UNROLL for (long i = 0; i < LANES / 2; i++) {
      next[2 * i] = __builtin_shufflevector(rows[i], rows[i + LANES / 2], ZIP_LOW);
      next[2 * i + 1] = __builtin_shufflevector(rows[i], rows[i + LANES / 2], ZIP_HIGH);
    }
    UNROLL for (long i = 0; i < LANES; i++) rows[i] = next[i];
  }
}

/* --- the tile ---------------------------------------------------------------------------------------------------- */

/* Write a tile that has fewer columns than its vectors, or lies in C along columns. */
static void N(place)(const struct N(step) * s, const real *held, long rows, long width) {
  if (s->c_column == 1) {
    for (long i = 0; i < rows; i++, held += width) {
      real *c = s->c + i * s->c_row;
      for (long j = 0; j < s->columns; j++) {
        real found = held[j] + (s->bias && s->bias_column ? s->bias[j] : 0);
        c[j] = s->add ? c[j] + found : found;
      }
    }
    return;
  }
  for (long top = 0; top < rows; top += LANES)
    for (long left = 0; left < s->columns; left += LANES) {
      vec lines[LANES];
      UNROLL for (long i = 0; i < LANES; i++) lines[i] = load(held + (top + i) * width + left);
      N(transpose)(lines);
      long count = rows - top < LANES ? rows - top : LANES, most = s->columns - left < LANES ? s->columns - left : LANES;
      real *c = s->c + top * s->c_row + left * s->c_column, line[LANES];
      for (long j = 0; j < most; j++, c += s->c_column) {
        real extra = s->bias && s->bias_column ? s->bias[left + j] : 0;
        store(line, lines[j]);
        if (s->c_row == 1 && !s->add && !extra) memcpy(c, line, (size_t)count * sizeof(real));
        else
          for (long i = 0; i < count; i++) c[i * s->c_row] = line[i] + extra + (s->add ? c[i * s->c_row] : 0);
      }
    }
}

/* Compute a tile of `rows` by `vectors`, both known to the compiler. The pointers to A, one to three rows, and their
   being moved one by one (`__asm__`), keep it from holding an address a row, for which there are no registers. */
INLINE void N(tile)(const struct N(step) * s, const int rows, const int vectors) {
  vec sum[TILE_ROWS][2];
  const real *of_three[(TILE_ROWS + 2) / 3], *b = s->b;
  const long a_row = s->a_row, a_step = s->a_step, b_step = s->b_step;
  UNROLL for (int i = 0; i < rows; i++) UNROLL for (int v = 0; v < vectors; v++) sum[i][v] = all(0);
  UNROLL for (int i = 0; i < (rows + 2) / 3; i++) of_three[i] = s->a + 3 * i * a_row;
  if (FETCHES && s->c_column == 1) /* its lines arrive while the sums are made */
    UNROLL for (int i = 0; i < rows; i++) UNROLL for (int v = 0; v < vectors; v++)
        __builtin_prefetch(s->c + i * s->c_row + v * LANES, 1);
  for (long p = s->k; p > 0; p--, b += b_step) {
    vec line[2];
    UNROLL for (int v = 0; v < vectors; v++) {
      line[v] = load(b + v * LANES);
      if (FETCHES) __builtin_prefetch(b + v * LANES + AHEAD * b_step);
    }
    UNROLL for (int i = 0; i < rows; i++) {
      vec factor = all(of_three[i / 3][(i % 3) * a_row]);
      UNROLL for (int v = 0; v < vectors; v++) sum[i][v] += factor * line[v];
    }
    UNROLL for (int i = 0; i < (rows + 2) / 3; i++) {
      of_three[i] += a_step;
      __asm__("" : "+r"(of_three[i]));
    }
  }
  if (s->bias && s->bias_row)
    UNROLL for (int i = 0; i < rows; i++) UNROLL for (int v = 0; v < vectors; v++) sum[i][v] += s->bias[i * s->bias_row];
  if (s->c_column == 1 && s->columns == vectors * LANES) {
    if (s->bias && s->bias_column)
      UNROLL for (int v = 0; v < vectors; v++) {
        vec extra = load(s->bias + v * LANES);
        UNROLL for (int i = 0; i < rows; i++) sum[i][v] += extra;
      }
    if (s->add)
      UNROLL for (int i = 0; i < rows; i++) UNROLL for (int v = 0; v < vectors; v++)
          sum[i][v] += load(s->c + i * s->c_row + v * LANES);
    UNROLL for (int i = 0; i < rows; i++) UNROLL for (int v = 0; v < vectors; v++)
        store(s->c + i * s->c_row + v * LANES, sum[i][v]);
    return;
  }
  real held[PADDED_ROWS * TILE_COLUMNS];
  UNROLL for (int i = 0; i < rows; i++) UNROLL for (int v = 0; v < vectors; v++)
      store(held + (i * vectors + v) * LANES, sum[i][v]);
  N(place)(s, held, rows, vectors * LANES);
}

#define TILES(rows) \
  static void N(tile_one_##rows)(const struct N(step) * s) { N(tile)(s, rows, 1); } \
  static void N(tile_two_##rows)(const struct N(step) * s) { N(tile)(s, rows, 2); }
TILES(1) TILES(2) TILES(3) TILES(4) TILES(5) TILES(6)
#if TILE_ROWS == 14
TILES(7) TILES(8) TILES(9) TILES(10) TILES(11) TILES(12) TILES(13) TILES(14)
#define ROWS_OF(kind) \
  {kind(1), kind(2), kind(3), kind(4), kind(5), kind(6), kind(7), kind(8), kind(9), kind(10), kind(11), kind(12), kind(13), kind(14)}
#else
#define ROWS_OF(kind) {kind(1), kind(2), kind(3), kind(4), kind(5), kind(6)}
#endif
#define ONE(rows) N(tile_one_##rows)
#define TWO(rows) N(tile_two_##rows)
static void (*const N(tiles)[2][TILE_ROWS])(const struct N(step) *) = {ROWS_OF(ONE), ROWS_OF(TWO)};

/* --- panels ------------------------------------------------------------------------------------------------------ */

/* Copy columns of B, at most TILE_COLUMNS, into a panel of `width` columns; what is over is 0. */
static void N(pack_panel)(const struct product *p, long column, long columns, long width, real *panel) {
  const real *b = (const real *)p->b + column * p->b_column;
  const long k = p->k, b_step = p->b_step, b_column = p->b_column;
  if (b_column == 1 && columns == TILE_COLUMNS) {
    for (long i = 0; i < k; i++, b += b_step, panel += width) {
      store(panel, load(b));
      store(panel + LANES, load(b + LANES));
    }
    return;
  }
  if (b_step != 1 || columns < width) memset(panel, 0, (size_t)(k * width) * sizeof(real));
  if (b_step != 1) {
    for (long i = 0; i < k; i++, b += b_step, panel += width)
      for (long j = 0; j < columns; j++) panel[j] = b[j * b_column];
    return;
  }
  for (long left = 0; left < columns; left += LANES, b += LANES * b_column, panel += LANES) {
    long count = columns - left < LANES ? columns - left : LANES, i = 0;
    for (; i + LANES <= k; i += LANES) {
      vec lines[LANES];
      if (count == LANES)
        UNROLL for (long j = 0; j < LANES; j++) lines[j] = load(b + j * b_column + i);
      else
        for (long j = 0; j < LANES; j++) lines[j] = j < count ? load(b + j * b_column + i) : all(0);
      N(transpose)(lines);
      UNROLL for (long j = 0; j < LANES; j++) store(panel + (i + j) * width, lines[j]);
    }
    for (; i < k; i++)
      for (long j = 0; j < count; j++) panel[i * width + j] = b[j * b_column + i];
  }
}

/* Pack the panels [first, end); a last panel of at most LANES columns is as narrow as that. */
static void N(pack)(const struct product *p, void *panels, long first, long end) {
  for (long panel = first; panel < end; panel++) {
    long column = panel * TILE_COLUMNS, columns = p->n - column < TILE_COLUMNS ? p->n - column : TILE_COLUMNS;
    N(pack_panel)(p, column, columns, columns > LANES ? TILE_COLUMNS : LANES, (real *)panels + panel * TILE_COLUMNS * p->k);
  }
}

/* --- blocks ------------------------------------------------------------------------------------------------------ */

/* Copy a tile's rows of A, of which there are `left` from the first one on, so that they lie together; return how they lie. */
INLINE void N(copy_rows)(struct N(step) * s, long rows, long left, real *copy) {
  if (s->a_row == 1) {
    const real *a = s->a;
    if (left >= PADDED_ROWS) /* whole vectors: what is over, the next step's overwrites */
      for (long p = 0; p < s->k; p++, a += s->a_step)
        UNROLL for (long v = 0; v < PADDED_ROWS; v += LANES) store(copy + p * rows + v, load(a + v));
    else
      for (long p = 0; p < s->k; p++, a += s->a_step)
        for (long i = 0; i < rows; i++) copy[p * rows + i] = a[i];
    s->a_step = rows;
  } else {
    for (long i = 0; i < rows; i++)
      if (s->a_step == 1) memcpy(copy + i * s->k, s->a + i * s->a_row, (size_t)s->k * sizeof(real));
      else
        for (long p = 0; p < s->k; p++) copy[i * s->k + p] = s->a[i * s->a_row + p * s->a_step];
    s->a_row = s->k, s->a_step = 1;
  }
  s->a = copy;
}

/* Compute C in rows [row, row_end) and in panels [panel, panel_end). */
static void N(multiply)(const struct product *p, long row, long row_end, long panel, long panel_end) {
  real copy[TILE_ROWS * BLOCK + PADDED_ROWS];
  const real *a = p->a, *b = p->b, *bias = p->bias, *panels = p->panels, *rest = p->rest;
  const long tiles = (row_end - row + TILE_ROWS - 1) / TILE_ROWS, blocks = (p->k + BLOCK - 1) / BLOCK;
  for (long block = 0; block < (blocks ? blocks : 1); block++) {
    const long from = blocks ? p->k * block / blocks : 0, to = blocks ? p->k * (block + 1) / blocks : 0;
    for (long tile = 0; tile < tiles; tile++) {
      const long top = row + (row_end - row) * tile / tiles, rows = row + (row_end - row) * (tile + 1) / tiles - top;
      struct N(step) s = {.k = to - from, .a = a + top * p->a_row + from * p->a_step, .a_row = p->a_row, .a_step = p->a_step,
                          .c_row = p->c_row, .c_column = p->c_column, .bias_row = p->bias_row,
                          .bias_column = p->bias_column, .add = p->add || block > 0};
      if (panel_end - panel >= COPY_FROM && (s.a_step != 1 || s.k >= COPY_STEPS)) N(copy_rows)(&s, rows, p->m - top, copy);
      for (long at = panel; at < panel_end; at++) {
        const long column = at * TILE_COLUMNS, columns = p->n - column < TILE_COLUMNS ? p->n - column : TILE_COLUMNS;
        const int wide = columns > LANES;
        if (panels || columns < TILE_COLUMNS) {
          s.b_step = wide ? TILE_COLUMNS : LANES;
          s.b = (panels ? panels + column * p->k : rest) + from * s.b_step;
        } else {
          s.b_step = p->b_step;
          s.b = b + from * p->b_step + column;
        }
        s.c = (real *)p->c + top * p->c_row + column * p->c_column;
        s.columns = columns;
        s.bias = bias && block == 0 ? bias + top * p->bias_row + column * p->bias_column : NULL;
        N(tiles)[wide][rows - 1](&s);
      }
    }
  }
}

static struct tiling N(tiling)(void) { return (struct tiling){TILE_ROWS, TILE_COLUMNS, LANES, COLUMNS_AT_ONCE}; }
