/* Places of the largest or smallest numbers of rows.

   No more are asked for than a row has, nor than MOST_OF_TOPK. Included by kernels.c; called by bindings/topk.c. NOTE
   [Kernels] in table.h. */
#define TESTED_AT_ONCE 4 /* vectors */

/* Whether numbers come before one: NaN is the greatest. */
INLINE ivec come_before(vec x, vec last, const int largest) {
  return largest ? (x > last) | (is_nan(x) & ~is_nan(last)) : (x < last) | (is_nan(last) & ~is_nan(x));
}
INLINE int comes_before(real a, real b, const int largest) {
  return largest ? a > b || (a != a && b == b) : a < b || (b != b && a == a);
}

INLINE int has_any(ivec mask) {
  uint64_t word[VECTOR_BYTES / sizeof(uint64_t)], found = 0;
  memcpy(word, &mask, sizeof mask);
  for (size_t i = 0; i < sizeof word / sizeof *word; i++) found |= word[i];
  return found != 0;
}

/* Write the places of the first `count` of a row; equals keep their order. */
INLINE void top_of_row(const real *x, int64_t *places, long size, long count, const int largest) {
  real kept[MOST_OF_TOPK];
  long filled = 0;
  for (long i = 0; i < size; i++) {
    for (; filled == count && i + TESTED_AT_ONCE * LANES <= size; i += TESTED_AT_ONCE * LANES) {
      ivec any = come_before(load(x + i), all(kept[count - 1]), largest);
      for (long v = 1; v < TESTED_AT_ONCE; v++) any |= come_before(load(x + i + v * LANES), all(kept[count - 1]), largest);
      if (has_any(any)) break;
    }
    long end = i + TESTED_AT_ONCE * LANES < size ? i + TESTED_AT_ONCE * LANES : size;
    for (; i < end; i++) {
      if (filled == count && !comes_before(x[i], kept[count - 1], largest)) continue;
      long at = filled < count ? filled++ : count - 1;
      for (; at && comes_before(x[i], kept[at - 1], largest); at--) kept[at] = kept[at - 1], places[at] = places[at - 1];
      kept[at] = x[i], places[at] = i;
    }
    i--;
  }
}

static void N(top_places)(const void *x, int64_t *places, long begin, long end, long size, long count, int largest) {
  for (long row = begin; row < end; row++)
    if (largest)
      top_of_row((const real *)x + row * size, places + row * count, size, count, 1);
    else
      top_of_row((const real *)x + row * size, places + row * count, size, count, 0);
}
