/* The interpreter of programs.h.

   A program was checked by core/plan.c: its registers exist and hold something when they are read. `source` has as
   many pointers as it has sources. Included by kernels.c; called by the core (core/op.c, core/derive.c,
   core/numbers.c). NOTE [Kernels] in table.h. */
#include "programs.h"

#define BLOCK 512

/* One instruction over n numbers: whole vectors, then the rest one by one (TAIL) or as part of a vector. */
#define LOAD(p, step) ((step) ? load(p + i) : all(*p))
#define ONE(p, step) p[(step) ? i : 0]
#define LOOP(VECTOR, SCALAR)                                    \
  for (i = 0; i + LANES <= n; i += LANES) store(to + i, VECTOR); \
  for (; i < n; i++) to[i] = SCALAR;
#define BINARY(OPERATOR) LOOP(LOAD(a, sa) OPERATOR LOAD(b, sb), ONE(a, sa) OPERATOR ONE(b, sb))
#define UNARY(FUNCTION)                                                      \
  for (i = 0; i + LANES <= n; i += LANES) store(to + i, FUNCTION(LOAD(a, sa))); \
  if (i < n) store_part(to + i, FUNCTION(sa ? load_part(a + i, n - i, 0) : all(*a)), n - i);
/* Truth is 1 or 0, so that it can be kept in registers like any number. */
#define COMPARE(OPERATOR) \
  LOOP(choose(LOAD(a, sa) OPERATOR LOAD(b, sb), all(1), all(0)), ONE(a, sa) OPERATOR ONE(b, sb) ? 1 : 0)

static void N(run_program)(const struct program *program, const void *const *source, int single, void *out_, long count) {
  real constant[MOST_CONSTANTS], scratch[MOST_SCRATCH][BLOCK];
  const int sources = program->sources, first_scratch = sources + program->constants, last = program->steps - 1;
  for (int k = 0; k < program->constants; k++) constant[k] = (real)program->constant[k];
  for (long done = 0; done < count; done += BLOCK) {
    const long n = count - done < BLOCK ? count - done : BLOCK;
    for (int s = 0; s <= last; s++) {
      const unsigned char *step = program->step[s];
      const real *read[3];
      int moves[3];
      for (int k = 0; k < 3; k++) {
        int r = step[2 + k];
        if (r < sources) {
          moves[k] = !(single >> r & 1);
          read[k] = (const real *)source[r] + (moves[k] ? done : 0);
        } else if (r < first_scratch) {
          moves[k] = 0;
          read[k] = constant + (r - sources);
        } else {
          moves[k] = 1;
          read[k] = scratch[r - first_scratch];
        }
      }
      real *to = s == last ? (real *)out_ + done : scratch[step[1] - first_scratch];
      const real *a = read[0], *b = read[1], *c = read[2];
      const int sa = moves[0], sb = moves[1], sc = moves[2];
      long i;
      switch ((enum instruction)step[0]) {
        case DO_ADD: BINARY(+) break;
        case DO_SUB: BINARY(-) break;
        case DO_MUL: BINARY(*) break;
        case DO_DIV: BINARY(/) break;
        case DO_NEG: LOOP(-LOAD(a, sa), -ONE(a, sa)) break;
        case DO_EXP: UNARY(exp_of) break;
        case DO_TANH: UNARY(tanh_of) break;
        case DO_LOG: UNARY(log_of) break;
        case DO_LOG1P: UNARY(log1p_of) break;
        case DO_EXPM1: UNARY(expm1_of) break;
        case DO_SIGMOID: UNARY(sigmoid_of) break;
        case DO_SQRT: UNARY(root_of) break;
        case DO_ABS: UNARY(absolute) break;
        case DO_MAXIMUM:
          LOOP(choose((LOAD(a, sa) > LOAD(b, sb)) | is_nan(LOAD(a, sa)), LOAD(a, sa), LOAD(b, sb)),
               ONE(a, sa) > ONE(b, sb) || ONE(a, sa) != ONE(a, sa) ? ONE(a, sa) : ONE(b, sb)) break;
        case DO_MINIMUM:
          LOOP(choose((LOAD(a, sa) < LOAD(b, sb)) | is_nan(LOAD(a, sa)), LOAD(a, sa), LOAD(b, sb)),
               ONE(a, sa) < ONE(b, sb) || ONE(a, sa) != ONE(a, sa) ? ONE(a, sa) : ONE(b, sb)) break;
        case DO_LT: COMPARE(<) break;
        case DO_LE: COMPARE(<=) break;
        case DO_GT: COMPARE(>) break;
        case DO_GE: COMPARE(>=) break;
        case DO_EQ: COMPARE(==) break;
        case DO_NE: COMPARE(!=) break;
        case DO_AND: BINARY(*) break;
        case DO_OR:
          LOOP(choose((LOAD(a, sa) != 0) | (LOAD(b, sb) != 0), all(1), all(0)), ONE(a, sa) != 0 || ONE(b, sb) != 0 ? 1 : 0) break;
        case DO_NOT: LOOP(1 - LOAD(a, sa), 1 - ONE(a, sa)) break;
        case DO_KEPT: LOOP(choose(LOAD(b, sb) != 0, LOAD(a, sa), all(0)), ONE(b, sb) != 0 ? ONE(a, sa) : 0) break;
        case DO_WHERE:
          LOOP(choose(LOAD(a, sa) != 0, LOAD(b, sb), LOAD(c, sc)), ONE(a, sa) != 0 ? ONE(b, sb) : ONE(c, sc)) break;
        case DO_TANH_GRADIENT: /* contracted like the kernel's, so that both round alike */
          LOOP(LOAD(a, sa) - LOAD(a, sa) * (LOAD(b, sb) * LOAD(b, sb)), ONE(a, sa) - ONE(a, sa) * (ONE(b, sb) * ONE(b, sb))) break;
        case DO_COPY: LOOP(LOAD(a, sa), ONE(a, sa)) break;
        case DO_NOTHING: return;
      }
    }
  }
}

#undef LOAD
#undef ONE
#undef LOOP
#undef BINARY
#undef UNARY
#undef COMPARE
#undef BLOCK
