/* All kernels of one LEVEL and one type; see setup.py for how this file is compiled.

   Holds no code of its own: families are included in order, the later ones use the earlier ones' functions, and the
   table of table.h is all that is visible outside. NOTE [Kernels] in table.h. */
#include "simd.h"
#include "gemm_driver.h"
#include "table.h"

#include "simd_math.h"

#include "pointwise.c"
#include "special.c"
#include "programs.c"
#include "arithmetic.c"
#include "random_numbers.c"
#include "normals.c"
#include "counts.c"
#include "gammas.c"
#include "binomials.c"
#include "rows.c"
#include "topk.c"
#include "norms.c"
#include "losses.c"
#include "channels.c"
#include "columns.c"
#include "groups.c"
#include "distances.c"
#include "lu_factors.c"
#include "grid_samples.c"
#include "pooling.c"
#include "slices.c"
#include "gemm.c"
#include "attention.c"
#include "gemv.c"
#include "optimizer_steps.c"
#include "summaries.c"
#include "recurrence.c"
#include "windows.c"

#define ENTRY(name, result, arguments) .name = N(name),
const struct table N(table) = {KERNELS(ENTRY)};
