/* Windows of planes reduced to one number each; numbers added at flat places.

   Windows lie in the padded copy and bins in the plane: the binding has laid them out. Flat places are read once and
   checked here. Included by kernels.c; called by bindings/pooling.c. NOTE [Kernels] in table.h. */

static long copy_numbers(const struct pooling *p) { return p->padded[0] * p->padded[1] * p->row; }

/* Where a plane's row lies in the copy, padding left out. */
INLINE real *row_in_copy(const struct pooling *p, real *copy, long depth, long line) {
  return copy + ((depth + p->padding[0]) * p->padded[1] + line + p->padding[1]) * p->row;
}

INLINE long rounded_to_lanes(long n) { return (n + LANES - 1) / LANES * LANES; }

/* Lay the plane into the copy: column c at strand c % stride, place c / stride. */
static void lay_plane(const struct pooling *p, const real *x, real *copy) {
  long stride = p->stride[2], width = p->size[2];
  for (long depth = 0; depth < p->size[0]; depth++)
    for (long line = 0; line < p->size[1]; line++, x += width) {
      real *to = row_in_copy(p, copy, depth, line);
      for (long phase = 0; phase < stride; phase++) {
        long first = (phase - p->padding[2] % stride + stride) % stride; /* column of the plane met first */
        real *strand = to + phase * p->strand + (first + p->padding[2]) / stride;
        if (stride == 1)
          memcpy(strand, x, (size_t)width * sizeof(real));
        else if (stride == 2)
          for (long i = 0, c = first; c < width; i++, c += 2) strand[i] = x[c];
        else
          for (long i = 0, c = first; c < width; i++, c += stride) strand[i] = x[c];
      }
    }
}

/* The way back. */
static void take_plane(const struct pooling *p, real *x, real *copy) {
  long stride = p->stride[2], width = p->size[2];
  for (long depth = 0; depth < p->size[0]; depth++)
    for (long line = 0; line < p->size[1]; line++, x += width) {
      const real *from = row_in_copy(p, copy, depth, line);
      for (long phase = 0; phase < stride; phase++) {
        long first = (phase - p->padding[2] % stride + stride) % stride;
        const real *strand = from + phase * p->strand + (first + p->padding[2]) / stride;
        if (stride == 1)
          memcpy(x, strand, (size_t)width * sizeof(real));
        else
          for (long i = 0, c = first; c < width; i++, c += stride) x[c] = strand[i];
      }
    }
}

/* The first element of a window's own in the plane: padding is none. */
static long first_inside(const struct pooling *p, const long *at) {
  long found = 0;
  for (int dim = 0; dim < POOLED_DIMS; dim++) {
    long place = at[dim] * p->stride[dim] - p->padding[dim];
    if (place < 0) place += (-place + p->dilation[dim] - 1) / p->dilation[dim] * p->dilation[dim];
    found = found * p->size[dim] + place;
  }
  return found;
}

/* LANES windows side by side, n of them asked for, from the one at `at` on. NaN is larger than all, the last one wins. */
INLINE void largest_of_windows(const struct pooling *p, const real *met, const long *at, long before, real *values,
                               int64_t *indices, int64_t *flat, long n) {
  vec best = all(-(real)INFINITY);
  ivec which = (integer)-1 - (ivec){0}; /* none yet */
  for (long tap = 0; tap < p->taps; tap++) {
    vec seen = load(met + p->met[tap]);
    ivec better = ((seen > best) | is_nan(seen)) != 0;
    best = choose(better, seen, best);
    which = (better & ((integer)p->step[tap] - (ivec){0})) | (~better & which);
  }
  store_some(values, best, n);
  integer lane[LANES];
  memcpy(lane, &which, sizeof which);
  long start = ((at[0] * p->stride[0] - p->padding[0]) * p->size[1] + at[1] * p->stride[1] - p->padding[1]) * p->size[2] +
               at[2] * p->stride[2] - p->padding[2];
  for (long i = 0; i < n; i++) {
    long found = start + i * p->stride[2] + lane[i];
    if (lane[i] < 0) found = first_inside(p, (long[]){at[0], at[1], at[2] + i});
    indices[i] = found, flat[i] = before + found;
  }
}

static void N(windows_largest)(const struct pooling *p, const void *x_, void *values_, int64_t *indices, int64_t *flat,
                               void *scratch, long begin, long end) {
  real *copy = scratch, *values = (real *)values_ + begin * p->area;
  long numbers = copy_numbers(p);
  for (long i = 0; i < numbers; i++) copy[i] = -(real)INFINITY;
  indices += begin * p->area, flat += begin * p->area;
  for (long plane = begin; plane < end; plane++) {
    lay_plane(p, (const real *)x_ + plane * p->plane, copy);
    long at[POOLED_DIMS];
    for (at[0] = 0; at[0] < p->places[0]; at[0]++)
      for (at[1] = 0; at[1] < p->places[1]; at[1]++) {
        const real *met = copy + (at[0] * p->stride[0] * p->padded[1] + at[1] * p->stride[1]) * p->row;
        for (at[2] = 0; at[2] < p->places[2]; at[2] += LANES) {
          long n = p->places[2] - at[2] < LANES ? p->places[2] - at[2] : LANES;
          largest_of_windows(p, met + at[2], at, plane * p->plane, values, indices, flat, n);
          values += n, indices += n, flat += n;
        }
      }
  }
}

/* The divisors of windows along the last dim, whole vectors of them. */
static void lay_counts(const struct pooling *p, real *across) {
  long width = rounded_to_lanes(p->places[2]);
  for (long i = 0; i < width; i++) across[i] = i < p->places[2] ? (real)p->count[2][i] : 1;
}

static void N(windows_means)(const struct pooling *p, const void *x_, void *out_, void *scratch, long begin, long end) {
  long numbers = copy_numbers(p);
  real *copy = scratch, *across = copy + numbers, *out = (real *)out_ + begin * p->area;
  memset(copy, 0, (size_t)numbers * sizeof(real));
  lay_counts(p, across);
  for (long plane = begin; plane < end; plane++) {
    lay_plane(p, (const real *)x_ + plane * p->plane, copy);
    for (long depth = 0; depth < p->places[0]; depth++)
      for (long line = 0; line < p->places[1]; line++) {
        const real *met = copy + (depth * p->stride[0] * p->padded[1] + line * p->stride[1]) * p->row;
        vec count = all((real)(p->count[0][depth] * p->count[1][line]));
        for (long i = 0; i < p->places[2]; i += LANES) {
          long n = p->places[2] - i < LANES ? p->places[2] - i : LANES;
          vec sum = all(0);
          for (long tap = 0; tap < p->taps; tap++) sum += load(met + i + p->met[tap]);
          store_some(out, sum / (count * load(across + i)), n);
          out += n;
        }
      }
  }
}

static void N(windows_shared)(const struct pooling *p, const void *grad_, void *out_, void *scratch, long begin, long end) {
  long numbers = copy_numbers(p), width = rounded_to_lanes(p->places[2]);
  real *copy = scratch, *across = copy + numbers, *share = across + width;
  const real *grad = (const real *)grad_ + begin * p->area;
  lay_counts(p, across);
  for (long plane = begin; plane < end; plane++) {
    memset(copy, 0, (size_t)numbers * sizeof(real));
    for (long depth = 0; depth < p->places[0]; depth++)
      for (long line = 0; line < p->places[1]; line++, grad += p->places[2]) {
        real *met = copy + (depth * p->stride[0] * p->padded[1] + line * p->stride[1]) * p->row;
        vec count = all((real)(p->count[0][depth] * p->count[1][line]));
        for (long i = 0; i < p->places[2]; i += LANES) {
          long n = p->places[2] - i < LANES ? p->places[2] - i : LANES;
          store(share + i, load_some(grad + i, n) / (count * load(across + i)));
        }
        for (long tap = 0; tap < p->taps; tap++) {
          real *to = met + p->met[tap];
          for (long i = 0; i < width; i += LANES) store(to + i, load(to + i) + load(share + i));
        }
      }
    take_plane(p, (real *)out_ + plane * p->plane, copy);
  }
}

/* --- bins ------------------------------------------------------------------------------------------------------------ */

static void N(bins_largest)(const struct bins *b, const void *x_, void *values_, int64_t *indices, int64_t *flat, long begin,
                            long end) {
  long found = begin * b->area;
  real *values = values_;
  for (long plane = begin; plane < end; plane++) {
    const real *x = (const real *)x_ + plane * b->plane;
    for (long i = 0; i < b->places[0]; i++)
      for (long j = 0; j < b->places[1]; j++)
        for (long k = 0; k < b->places[2]; k++, found++) {
          long at = (b->start[0][i] * b->size[1] + b->start[1][j]) * b->size[2] + b->start[2][k];
          real best = x[at];
          for (long depth = b->start[0][i]; depth < b->stop[0][i]; depth++)
            for (long line = b->start[1][j]; line < b->stop[1][j]; line++) {
              long row = (depth * b->size[1] + line) * b->size[2];
              for (long place = row + b->start[2][k]; place < row + b->stop[2][k]; place++) {
                int better = x[place] > best || x[place] != x[place];
                best = better ? x[place] : best, at = better ? place : at;
              }
            }
          values[found] = best, indices[found] = at, flat[found] = plane * b->plane + at;
        }
  }
}

INLINE void add_row(real *to, const real *from, long n) {
  long i = 0;
  for (; i + LANES <= n; i += LANES) store(to + i, load(to + i) + load(from + i));
  for (; i < n; i++) to[i] += from[i];
}

/* First the sum over the other dims of each column, then that of columns. */
static void N(bins_means)(const struct bins *b, const void *x_, void *out_, void *scratch, long begin, long end) {
  real *sums = scratch, *out = (real *)out_ + begin * b->area;
  for (long plane = begin; plane < end; plane++) {
    const real *x = (const real *)x_ + plane * b->plane;
    for (long i = 0; i < b->places[0]; i++)
      for (long j = 0; j < b->places[1]; j++) {
        memset(sums, 0, (size_t)b->size[2] * sizeof(real));
        for (long depth = b->start[0][i]; depth < b->stop[0][i]; depth++)
          for (long line = b->start[1][j]; line < b->stop[1][j]; line++)
            add_row(sums, x + (depth * b->size[1] + line) * b->size[2], b->size[2]);
        long rows = (b->stop[0][i] - b->start[0][i]) * (b->stop[1][j] - b->start[1][j]);
        for (long k = 0; k < b->places[2]; k++) {
          real sum = 0;
          for (long column = b->start[2][k]; column < b->stop[2][k]; column++) sum += sums[column];
          *out++ = sum / (real)(rows * (b->stop[2][k] - b->start[2][k]));
        }
      }
  }
}

static void N(bins_shared)(const struct bins *b, const void *grad_, void *out_, void *scratch, long begin, long end) {
  real *shares = scratch;
  const real *grad = (const real *)grad_ + begin * b->area;
  for (long plane = begin; plane < end; plane++) {
    real *out = (real *)out_ + plane * b->plane;
    memset(out, 0, (size_t)b->plane * sizeof(real));
    for (long i = 0; i < b->places[0]; i++)
      for (long j = 0; j < b->places[1]; j++) {
        memset(shares, 0, (size_t)b->size[2] * sizeof(real));
        long rows = (b->stop[0][i] - b->start[0][i]) * (b->stop[1][j] - b->start[1][j]);
        for (long k = 0; k < b->places[2]; k++) {
          real share = *grad++ / (real)(rows * (b->stop[2][k] - b->start[2][k]));
          for (long column = b->start[2][k]; column < b->stop[2][k]; column++) shares[column] += share;
        }
        for (long depth = b->start[0][i]; depth < b->stop[0][i]; depth++)
          for (long line = b->start[1][j]; line < b->stop[1][j]; line++)
            add_row(out + (depth * b->size[1] + line) * b->size[2], shares, b->size[2]);
      }
  }
}

/* Add numbers at flat places; whether all of these exist. */
static int N(numbers_placed)(const void *values_, const int64_t *places, void *out_, long count, long size) {
  const real *values = values_;
  real *out = out_;
  for (long i = 0; i < count; i++) {
    const long at = read_once(places + i); /* NOTE [Arrays that change] */
    if (at < 0 || at >= size) return 0;
    out[at] += values[i];
  }
  return 1;
}
