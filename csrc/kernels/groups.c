/* Sums of rows that share an index.

   The index is checked by the binding and again here, number by number. Included by kernels.c; called by
   bindings/groups.c. NOTE [Kernels] in table.h. */

/* Add columns begin..end of each row to those of the row of `total` that its index names, in the order of the rows. The
   index was checked, but another thread may have written it since. */
static void N(sums_by_index)(const void *rows_, const void *index_, void *total_, long groups, long count, long size,
                             long begin, long end) {
  const int64_t *index = index_;
  for (long row = 0; row < count; row++) {
    const long at = read_once(index + row);
    if (at < 0 || at >= groups) continue;
    const real *from = (const real *)rows_ + row * size;
    real *to = (real *)total_ + at * size;
    long i = begin;
    for (; i + LANES <= end; i += LANES) store(to + i, load(to + i) + load(from + i));
    if (i < end) store_first(to + i, load_first(to + i, end - i, 0) + load_first(from + i, end - i, 0), end - i);
  }
}
