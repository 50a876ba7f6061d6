/* Elementwise expressions as short programs, run block by block in the cache: an op's forward or one of its
   derivatives, translated from its declaration (codegen/core_ops.py).

   Registers are numbered: first the sources (arrays, or single numbers), then constants, then scratch. An instruction is
   five bytes: what to do, where the result goes, and up to three registers to read. The result of the last one is the
   result of the program. Whoever makes a program checks it (core/plan.c); `run_program` checks nothing and cannot fail. */
#ifndef PROGRAMS_H
#define PROGRAMS_H

#define INSTRUCTIONS(I) \
  I(ADD) I(SUB) I(MUL) I(DIV) I(NEG) I(EXP) I(EXPM1) I(TANH) I(SIGMOID) I(LOG) I(LOG1P) I(SQRT) I(ABS) I(MAXIMUM) I(MINIMUM) I(LT) I(LE) I(GT) I(GE) \
      I(EQ) I(NE) I(AND) I(OR) I(NOT) I(KEPT) I(WHERE) I(TANH_GRADIENT) I(COPY)

#define AS_ENUM(name) DO_##name,
enum instruction { INSTRUCTIONS(AS_ENUM) DO_NOTHING };
#undef AS_ENUM

#define MOST_SOURCES 8
#define MOST_CONSTANTS 8
#define MOST_SCRATCH 8
#define MOST_REGISTERS (MOST_SOURCES + MOST_CONSTANTS + MOST_SCRATCH)
#define MOST_STEPS 24
#define WORDS 5

struct program {
  int sources, constants, steps;
  double constant[MOST_CONSTANTS];
  unsigned char step[MOST_STEPS][WORDS];
};

/* Run on n numbers. `source[i]` points to n numbers, or to one where `single` has bit i set. `out` may be a source. */
#define PROGRAMS(K) K(run_program, void, (const struct program *program, const void *const *source, int single, void *out, long n))

#endif
