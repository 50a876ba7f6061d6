/* Products of float32 matrices on the processor's tile unit, which multiplies bfloat16 and adds float32.

   A float32 is the exact sum of three bfloat16, x = x1 + x2 + x3, each about 2^-8 of the one before (Henry, Tang and
   Heinecke, "Leveraging the bfloat16 artificial intelligence datatype for higher-precision computations", 2019). Of the
   nine products of parts, six are computed; the others are below 2^-24 of the whole, as the rounding of one float32 is.
   The unit takes subnormal numbers for 0 and the parts of an infinity add up to NaN, so matrices with such numbers, or
   with numbers whose third part could be subnormal, are left to the vector kernels.

   NOTE [Packed tiles]
   Operands are packed into tiles of 16 rows of 64 bytes, three parts each. For 32 steps of k a row of A is one row of a
   tile: numbers k and k + 16 stand side by side, which one shift and one `or` do, where consecutive ones would need a
   permutation. Row r of a tile of B has steps r and r + 16 of 16 columns. What is over at the edges is 0. A block is 32
   rows of A, or 32 columns of B, by 32 steps: 3 parts × 2 tiles. C is computed in blocks of 32 × 32, four tiles.

   Called by gemm_driver.c with or without the GIL; sizes and strides were checked. NOTE [Kernels] in table.h. */
#include "gemm_amx.h"

#if defined(__x86_64__) && defined(__linux__) && (__GNUC__ >= 11 || __clang_major__ >= 12)

#include <immintrin.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "gemm_driver.h"
#include "pool.h"

#define ON_TILES __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,amx-tile,amx-bf16")))
#define INLINED static inline ON_TILES __attribute__((always_inline))
#define UNROLLED _Pragma("GCC unroll 16")
#define SIDE 16          /* rows of a tile, and numbers in a vector */
#define BLOCK (2 * SIDE) /* rows, columns and steps of a block */
#define TILE_BYTES 1024
#define PART_BYTES (2 * TILE_BYTES)
#define BLOCK_BYTES (3 * PART_BYTES)
#define STEPS 768        /* of k that are taken at once: a block's operands stay in the second cache */
#define PASSING 128      /* rows of A that pass each panel of B while it is in the cache, */
#define MANY_PASSING 256 /* and so many where B is larger than what a core has to itself */
#define LARGE (8 << 20)
#define WORTH (1 << 21)      /* multiplications from which tiles can be faster than vectors */
#define PARTS 4              /* that a product is cut into at least; each packs its rows of A itself */
#define GREATEST 0x7f7f8000u /* bits of the least number that rounds to infinity as a bfloat16 */
#define LEAST 0x0d800000u    /* bits of 2^-100 */

static long blocks_of(long n) { return (n + BLOCK - 1) / BLOCK; }
static long at_most(long n, long most) { return n < most ? n : most; }

int amx_runs_here(void) {
  unsigned a, b, c, d;
  const long permission = 0x1023, tile_data = 18; /* ARCH_REQ_XCOMP_PERM of arch_prctl(2) */
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw")) return 0;
  __asm__("cpuid" : "=a"(a), "=b"(b), "=c"(c), "=d"(d) : "a"(7), "c"(0));
  const unsigned units = 1u << 22 | 1u << 24; /* AMX-BF16, AMX-TILE */
  return (d & units) == units && !syscall(SYS_arch_prctl, permission, tile_data);
}

/* Packing takes a time as m + n, multiplying as m · n: the bounds are where both kernels took the same time. */
int amx_pays(const struct product *p) {
  return (double)p->m * p->n >= 64.0 * (p->m + p->n) && p->k >= BLOCK && (double)p->m * p->n * p->k >= WORTH && !p->add;
}

/* --- packing ----------------------------------------------------------------------------------------------------- */

/* The largest and the least magnitude seen, as bits; less one for the least, so that 0 counts as large. */
struct range {
  __m512i most, least;
};

INLINED __m512i rounded(__m512 x) {
  const __m512i bits = _mm512_add_epi32(_mm512_castps_si512(x), _mm512_set1_epi32(0x8000));
  return _mm512_and_si512(bits, _mm512_set1_epi32((int)0xffff0000u));
}

/* Write the three parts of two vectors, number by number side by side. */
INLINED void split(__m512 low, __m512 high, char *out, struct range *range) {
  UNROLLED for (int i = 0; i < 2; i++) {
    const __m512i magnitude = _mm512_and_si512(_mm512_castps_si512(i ? high : low), _mm512_set1_epi32(0x7fffffff));
    range->most = _mm512_max_epu32(range->most, magnitude);
    range->least = _mm512_min_epu32(range->least, _mm512_sub_epi32(magnitude, _mm512_set1_epi32(1)));
  }
  UNROLLED for (int part = 0; part < 3; part++, out += PART_BYTES) {
    const __m512i l = rounded(low), h = rounded(high);
    _mm512_storeu_si512(out, _mm512_or_si512(_mm512_srli_epi32(l, 16), h));
    low = _mm512_sub_ps(low, _mm512_castsi512_ps(l));
    high = _mm512_sub_ps(high, _mm512_castsi512_ps(h));
  }
}

INLINED void transpose(__m512 *rows) {
  const __m512i low = _mm512_set_epi32(23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  const __m512i high = _mm512_set_epi32(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8);
  UNROLLED for (int round = 0; round < 4; round++) {
    __m512 next[SIDE];
    UNROLLED for (int i = 0; i < SIDE / 2; i++) {
      next[2 * i] = _mm512_permutex2var_ps(rows[i], low, rows[i + SIDE / 2]);
      next[2 * i + 1] = _mm512_permutex2var_ps(rows[i], high, rows[i + SIDE / 2]);
    }
    UNROLLED for (int i = 0; i < SIDE; i++) rows[i] = next[i];
  }
}

INLINED __mmask16 first(long count) { return (__mmask16)((1u << at_most(count, SIDE)) - 1); }

/* Load SIDE rows of SIDE numbers; beyond `rows` and `columns`, which may be negative, they are 0. */
INLINED void load_square(const float *at, long row, long column, long rows, long columns, __m512 *out) {
  rows = rows < 0 ? 0 : rows, columns = columns < 0 ? 0 : columns;
  if (column == 1 || row == 1) {
    const long step = column == 1 ? row : column, lines = column == 1 ? rows : columns;
    const __mmask16 mask = first(column == 1 ? columns : rows);
    UNROLLED for (long i = 0; i < SIDE; i++) out[i] =
        i < lines ? _mm512_maskz_loadu_ps(mask, at + i * step) : _mm512_setzero_ps();
    if (column != 1) transpose(out);
    return;
  }
  float copy[SIDE][SIDE] = {{0}};
  for (long i = 0; i < at_most(rows, SIDE); i++)
    for (long j = 0; j < at_most(columns, SIDE); j++) copy[i][j] = at[i * row + j * column];
  UNROLLED for (int i = 0; i < SIDE; i++) out[i] = _mm512_loadu_ps(copy[i]);
}

/* Pack BLOCK of A's rows (or of B's columns, `across`) by `steps` steps; say whether all numbers can be split. */
static ON_TILES int pack_blocks(const float *at, long line, long step, long lines, long steps, int across, char *out) {
  struct range range = {_mm512_setzero_si512(), _mm512_set1_epi32(-1)};
  for (long k = 0; k < steps; k += BLOCK, at += BLOCK * step, out += BLOCK_BYTES)
    for (long half = 0; half < 2; half++) {
      const float *from = at + half * SIDE * line, *later = from + SIDE * step;
      const long count = lines - half * SIDE;
      __m512 low[SIDE], high[SIDE];
      if (across) {
        load_square(from, step, line, steps - k, count, low);
        load_square(later, step, line, steps - k - SIDE, count, high);
      } else {
        load_square(from, line, step, count, steps - k, low);
        load_square(later, line, step, count, steps - k - SIDE, high);
      }
      for (int i = 0; i < SIDE; i++) split(low[i], high[i], out + half * TILE_BYTES + i * 64, &range);
    }
  return _mm512_reduce_max_epu32(range.most) < GREATEST && _mm512_reduce_min_epu32(range.least) >= LEAST - 1;
}

/* --- multiplying ------------------------------------------------------------------------------------------------- */

static const struct {
  uint8_t palette, start_row, unused[14];
  uint16_t row_bytes[16];
  uint8_t rows[16];
} eight_tiles = {1, 0, {0}, {64, 64, 64, 64, 64, 64, 64, 64}, {16, 16, 16, 16, 16, 16, 16, 16}};

/* Statements, for GCC's functions of the unit are no expressions. */
#define LOAD(one, other, from) \
  _tile_loadd(one, from, 64);  \
  _tile_loadd(other, (from) + TILE_BYTES, 64)
#define LOAD_A(part) LOAD(4, 5, a + (part - 1) * PART_BYTES)
#define LOAD_B(part) LOAD(6, 7, b + (part - 1) * PART_BYTES)
#define MULTIPLY           \
  _tile_dpbf16ps(0, 4, 6); \
  _tile_dpbf16ps(1, 4, 7); \
  _tile_dpbf16ps(2, 5, 6); \
  _tile_dpbf16ps(3, 5, 7)

/* Ask for a part of the operands' next block, which lies in the second cache, while this one is multiplied. */
#define FETCH(from, part)                            \
  for (long line = 0; line < PART_BYTES; line += 64) \
  _mm_prefetch((from) + BLOCK_BYTES + (part - 1) * PART_BYTES + line, _MM_HINT_T0)

/* One block of C, BLOCK × BLOCK numbers: the products of parts (3, 1), (2, 1), (1, 1), (1, 3), (1, 2), (2, 2). */
static ON_TILES void multiply_block(const char *a, const char *b, long blocks, float *out) {
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (; blocks > 0; blocks--, a += BLOCK_BYTES, b += BLOCK_BYTES) {
    LOAD_A(3);
    LOAD_B(1);
    MULTIPLY;
    FETCH(a, 3);
    LOAD_A(2);
    MULTIPLY;
    FETCH(b, 1);
    LOAD_A(1);
    MULTIPLY;
    FETCH(a, 2);
    LOAD_B(3);
    MULTIPLY;
    FETCH(a, 1);
    LOAD_B(2);
    MULTIPLY;
    FETCH(b, 3);
    LOAD_A(2);
    MULTIPLY;
    FETCH(b, 2);
  }
  const long row = BLOCK * sizeof(float);
  _tile_stored(0, out, row);
  _tile_stored(1, out + SIDE, row);
  _tile_stored(2, out + SIDE * BLOCK, row);
  _tile_stored(3, out + SIDE * BLOCK + SIDE, row);
}

/* Write a block to C, with the bias or added to what C holds. */
static ON_TILES void write_block(const struct product *p, const float *block, long row, long column, int add) {
  const long rows = at_most(p->m - row, BLOCK);
  for (long left = 0; left < BLOCK && column + left < p->n; left += SIDE) {
    const __mmask16 mask = first(p->n - column - left);
    const float *bias =
        p->bias && !add ? (const float *)p->bias + row * p->bias_row + (column + left) * p->bias_column : NULL;
    float *c = (float *)p->c + row * p->c_row + column + left;
    for (long i = 0; i < rows; i++, c += p->c_row) {
      __m512 found = _mm512_loadu_ps(block + i * BLOCK + left);
      if (add) found = _mm512_add_ps(found, _mm512_maskz_loadu_ps(mask, c));
      if (bias && p->bias_column) found = _mm512_add_ps(found, _mm512_maskz_loadu_ps(mask, bias + i * p->bias_row));
      if (bias && !p->bias_column) found = _mm512_add_ps(found, _mm512_set1_ps(bias[i * p->bias_row]));
      _mm512_mask_storeu_ps(c, mask, found);
    }
  }
}

struct amx_job {
  const struct product *p;
  char *panels; /* of B: one for 32 columns, all steps */
  long panel_bytes, row_parts, panel_parts;
  atomic_int short_of_memory, unfit;
};

static void pack_part(void *job, long begin, long end) {
  struct amx_job *j = job;
  const struct product *p = j->p;
  for (long panel = begin; panel < end; panel++)
    if (!pack_blocks((const float *)p->b + panel * BLOCK * p->b_column, p->b_column, p->b_step, p->n - panel * BLOCK,
                     p->k, 1, j->panels + panel * j->panel_bytes))
      atomic_store(&j->unfit, 1);
}

/* C in rows [top, end) and panels [panel, panel_end): A's rows are packed for STEPS steps at a time. */
static ON_TILES void multiply_rows(struct amx_job *j, char *rows, long top, long end, long panel, long panel_end) {
  const struct product *p = j->p;
  float block[BLOCK * BLOCK] __attribute__((aligned(64)));
  for (long from = 0; from < p->k; from += STEPS) {
    const long steps = at_most(p->k - from, STEPS), blocks = blocks_of(steps);
    for (long row = top; row < end; row += BLOCK)
      if (!pack_blocks((const float *)p->a + row * p->a_row + from * p->a_step, p->a_row, p->a_step,
                       at_most(end - row, BLOCK), steps, 0, rows + (row - top) / BLOCK * blocks * BLOCK_BYTES))
        atomic_store(&j->unfit, 1);
    for (long at = panel; at < panel_end; at++)
      for (long row = top; row < end; row += BLOCK) {
        for (long i = row; i < at_most(p->m, row + BLOCK); i++) {
          const float *c = (const float *)p->c + i * p->c_row + at * BLOCK;
          __builtin_prefetch(c, 1);
          __builtin_prefetch(c + SIDE, 1);
        }
        multiply_block(rows + (row - top) / BLOCK * blocks * BLOCK_BYTES,
                       j->panels + at * j->panel_bytes + from / BLOCK * BLOCK_BYTES, blocks, block);
        write_block(p, block, row, at * BLOCK, from > 0);
      }
  }
}

static ON_TILES void multiply_part(void *job, long begin, long end) {
  struct amx_job *j = job;
  const long of_rows = blocks_of(j->p->m), panels = blocks_of(j->p->n);
  const long most = (of_rows + j->row_parts - 1) / j->row_parts;
  char *rows = scratch_take((size_t)(most * blocks_of(at_most(j->p->k, STEPS)) * BLOCK_BYTES));
  if (!rows) {
    atomic_store(&j->short_of_memory, 1);
    return;
  }
  _tile_loadconfig(&eight_tiles);
  for (long part = begin; part < end && !atomic_load(&j->unfit); part++) {
    const long of = part % j->row_parts, panel = part / j->row_parts;
    const long last = of_rows * (of + 1) / j->row_parts * BLOCK;
    multiply_rows(j, rows, of_rows * of / j->row_parts * BLOCK, at_most(last, j->p->m), panels * panel / j->panel_parts,
                  panels * (panel + 1) / j->panel_parts);
  }
  _tile_release();
  scratch_give(rows);
}

int gemm_amx(const struct product *p, int alone) {
  const long panels = blocks_of(p->n);
  struct amx_job job = {.p = p, .panel_bytes = blocks_of(p->k) * BLOCK_BYTES};
  const size_t bytes = (size_t)(panels * job.panel_bytes);
  const long rows = bytes > LARGE ? MANY_PASSING : PASSING, of_rows = blocks_of(p->m);
  job.row_parts = (p->m + rows - 1) / rows;
  if (job.row_parts < PARTS) job.row_parts = at_most(PARTS, of_rows);
  job.panel_parts = alone ? 1 : at_most((PARTS + job.row_parts - 1) / job.row_parts, panels);
  job.panels = scratch_take(bytes);
  if (!job.panels) return 0;
  if (alone) {
    pack_part(&job, 0, panels);
    multiply_part(&job, 0, job.row_parts * job.panel_parts);
  } else {
    pool_run(pack_part, &job, panels, 1 + (1 << 15) / (BLOCK * (p->k + 1)));
    pool_run(multiply_part, &job, job.row_parts * job.panel_parts, 1);
  }
  scratch_give(job.panels);
  return job.unfit ? -1 : !job.short_of_memory;
}

#else

int amx_runs_here(void) { return 0; }
int amx_pays(const struct product *p) { return (void)p, 0; }
int gemm_amx(const struct product *p, int alone) { return (void)p, (void)alone, 0; }

#endif
