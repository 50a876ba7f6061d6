/* Which kernel computes a product of matrices, how it is cut, and which operand is copied.

   A matrix times a vector goes to gemv.c, a large product of float32 to gemm_amx.c where the machine has AMX, all others to
   `multiply` of gemm.c.

   Called by bindings/matrices.c and, for memory to work in, by attention.c, with or without the GIL. Sizes and strides
   were checked; raises nothing, returns 0 or NULL if there is no memory, and then has given back what it took. */
#include "gemm_driver.h"
#include "gemm_amx.h"
#include "pool.h"
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* --- memory to work in ------------------------------------------------------------------------------------------- */

#define KEPT 8

struct scratch {
  size_t bytes;
  char unused[64 - sizeof(size_t)];
};
static _Atomic(struct scratch *) kept[KEPT];

/* Take the first kept piece that is large enough; a smaller one that is found on the way makes room for it. */
void *scratch_take(size_t bytes) {
  for (int i = 0; i < KEPT; i++) {
    struct scratch *found = atomic_exchange(&kept[i], NULL);
    if (!found) continue;
    if (found->bytes >= bytes) return found + 1;
    free(found);
  }
  size_t whole = (bytes + 4095) / 4096 * 4096;
  struct scratch *made = aligned_alloc(4096, whole + 4096);
  if (!made) return NULL;
  made->bytes = whole;
  return made + 1;
}

void scratch_give(void *memory) {
  if (!memory) return;
  struct scratch *given = (struct scratch *)memory - 1;
  for (int i = 0; given && i < KEPT; i++) {
    struct scratch *none = NULL;
    if (atomic_compare_exchange_strong(&kept[i], &none, given)) given = NULL;
  }
  free(given);
}

/* --- the partition ---------------------------------------------------------------------------------------------------- */

#define MANY_ROWS 160   /* of A pass each panel of B: copying it pays even where its rows are whole */
#define WORTH (1 << 19) /* multiplications that are worth a second thread */
#define PARTS 16
#define THIN 1024       /* numbers of a matrix beside a vector, from which a product with a vector alone is faster */

/* About how many cycles it takes to copy B, and to multiply. */
static double cost(const struct tiling *tiling, const struct product *p) {
  double k = p->k, vectors = (p->n + tiling->lanes - 1) / tiling->lanes;
  double found = k * p->m * vectors / 2;
  if (p->b_column != 1) found += k * p->n * 0.5;
  if (p->c_column != 1) found += (double)p->m * p->n;
  return found;
}

/* The same product with all three matrices transposed. */
static struct product turned(const struct product *p) {
  struct product other = *p;
  other.a = p->b, other.b = p->a, other.m = p->n, other.n = p->m;
  other.a_row = p->b_column, other.a_step = p->b_step, other.b_step = p->a_step, other.b_column = p->a_row;
  other.c_row = p->c_column, other.c_column = p->c_row;
  other.bias_row = p->bias_column, other.bias_column = p->bias_row;
  return other;
}

struct partition {
  const struct table *kernels;
  const struct product *p;
  void *scratch;
  long panels, row_parts, panel_parts;
};

static void pack_part(void *job, long begin, long end) {
  struct partition *partition = job;
  partition->kernels->pack(partition->p, partition->scratch, begin, end);
}

static void multiply_part(void *job, long begin, long end) {
  struct partition *partition = job;
  const struct product *p = partition->p;
  for (long part = begin; part < end; part++) {
    long row = part % partition->row_parts, panel = part / partition->row_parts;
    partition->kernels->multiply(p, p->m * row / partition->row_parts, p->m * (row + 1) / partition->row_parts,
                            partition->panels * panel / partition->panel_parts, partition->panels * (panel + 1) / partition->panel_parts);
  }
}

static void cut(struct partition *partition, const struct tiling *tiling) {
  const struct product *p = partition->p;
  double work = (double)p->m * p->n * p->k;
  long wanted = work < 2.0 * WORTH ? 1 : work / WORTH < PARTS ? (long)(work / WORTH) : PARTS;
  long tiles = (p->m + tiling->rows - 1) / tiling->rows;
  long least = (p->n + tiling->at_once - 1) / tiling->at_once;
  partition->panel_parts = least < partition->panels ? least : partition->panels;
  partition->row_parts = (wanted + partition->panel_parts - 1) / partition->panel_parts;
  if (partition->row_parts > (tiles + 3) / 4) partition->row_parts = (tiles + 3) / 4;
  while (partition->panel_parts * partition->row_parts < wanted && partition->panel_parts < partition->panels) partition->panel_parts++;
}

/* --- a matrix and a vector --------------------------------------------------------------------------------------- */

struct gemv_job {
  const struct table *kernels;
  const void *matrix, *v, *bias;
  void *out;
  long row, k;
  int by_rows;
};

static void gemv_part(void *job, long begin, long end) {
  struct gemv_job *j = job;
  (j->by_rows ? j->kernels->row_dots : j->kernels->row_mix)(j->matrix, j->row, j->v, j->bias, j->out, begin, end, j->k);
}

/* One column of numbers out of a matrix whose rows, or columns, lie whole in memory; 0 if it is another case. */
static int gemv(const struct table *kernels, size_t size, const struct product *given, int alone, int *done) {
  struct product p = given->n == 1 ? *given : turned(given);
  if (p.n != 1 || (p.a_step != 1 && p.a_row != 1) || (p.c_row != 1 && p.m > 1)) return 0;
  if (p.bias && p.bias_row != 1 && p.m > 1) return 0;
  struct gemv_job job = {.kernels = kernels, .matrix = p.a, .v = p.b, .bias = p.bias, .out = p.c, .k = p.k,
                           .by_rows = p.a_step == 1, .row = p.a_step == 1 ? p.a_row : p.a_step};
  char *copy = NULL;
  if (p.b_step != 1 && p.k > 1) {
    copy = scratch_take((size_t)p.k * size);
    *done = copy != NULL;
    if (!copy) return 1;
    for (long i = 0; i < p.k; i++) memcpy(copy + (size_t)i * size, (const char *)p.b + (size_t)(i * p.b_step) * size, size);
    job.v = copy;
  }
  if (alone || p.m * p.k < WORTH) gemv_part(&job, 0, p.m);
  else pool_run(gemv_part, &job, p.m, 64 + WORTH / (4 * (p.k + 1)));
  scratch_give(copy);
  *done = 1;
  return 1;
}

static int amx_in_use;

int gemm_use_amx(int wanted) { return amx_in_use = wanted && amx_runs_here(); }

static int gemm_dispatch(const struct table *kernels, size_t size, struct product *p, int alone) {
  int done;
  if (!p->m || !p->n) return 1;
  if ((p->m == 1 || p->n == 1) && p->k * (p->m + p->n) > THIN && gemv(kernels, size, p, alone, &done)) return done;
  struct product other = turned(p);
  if (amx_in_use && size == sizeof(float) && amx_pays(p)) {
    done = gemm_amx(p->c_column == 1 ? p : &other, alone);
    if (done >= 0) return done;
  }
  struct tiling tiling = kernels->tiling();
  if (cost(&tiling, &other) < cost(&tiling, p)) *p = other;
  struct partition partition = {.kernels = kernels, .p = p, .panels = (p->n + tiling.columns - 1) / tiling.columns};
  const int all = p->b_column != 1 || p->m >= MANY_ROWS;
  const long whole = p->n / tiling.columns, packed = all ? partition.panels : partition.panels - whole;
  const long numbers = packed * tiling.columns * p->k;
  if (packed) {
    partition.scratch = scratch_take((size_t)numbers * size);
    if (!partition.scratch) return 0;
  }
  cut(&partition, &tiling);
  const long parts = partition.row_parts * partition.panel_parts;
  if (all) {
    if (alone || parts == 1) pack_part(&partition, 0, partition.panels);
    else pool_run(pack_part, &partition, partition.panels, 1 + 16384 / (tiling.columns * (p->k + 1)));
    p->panels = partition.scratch;
  } else if (packed) {
    struct product tail = *p;
    tail.b = (const char *)p->b + (size_t)(whole * tiling.columns) * size, tail.n = p->n - whole * tiling.columns;
    kernels->pack(&tail, partition.scratch, 0, 1);
    p->rest = partition.scratch;
  }
  if (alone || parts == 1) multiply_part(&partition, 0, parts);
  else pool_run(multiply_part, &partition, parts, 1);
  scratch_give(partition.scratch);
  return 1;
}

int gemm(const struct table *kernels, size_t size, struct product *p) { return gemm_dispatch(kernels, size, p, 0); }
int gemm_on_this_thread(const struct table *kernels, size_t size, struct product *p) { return gemm_dispatch(kernels, size, p, 1); }
