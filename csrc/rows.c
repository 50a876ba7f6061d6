/* Row by row: softmax and its gradient. Included by kernels.c. */

static void N(softmax)(const void *x_, void *out_, long rows, long size) {
  const real *x = x_;
  real *out = out_;
  for (long row = 0; row < rows; row++, x += size, out += size) {
    long i = 0;
    vec top = all((real)-INFINITY), sum = all(0);
    for (; i + LANES <= size; i += LANES) top = larger(load(x + i), top);
    long rest = size - i;
    if (rest) top = larger(load_part(x + i, rest, (real)-INFINITY), top);
    real shift = largest_of(top);
    for (i = 0; i + LANES <= size; i += LANES) {
      vec e = exp_of(load(x + i) - shift);
      store(out + i, e);
      sum += e;
    }
    if (rest) {
      vec e = exp_of(load_part(x + i, rest, (real)-INFINITY) - shift);
      store_part(out + i, e, rest);
      sum += load_part(out + i, rest, 0);
    }
    real scale = 1 / sum_of(sum);
    for (i = 0; i + LANES <= size; i += LANES) store(out + i, load(out + i) * scale);
    for (; i < size; i++) out[i] *= scale;
  }
}

static void N(softmax_gradient)(const void *grad_, const void *out_, void *found_, long rows, long size) {
  const real *grad = grad_, *out = out_;
  real *found = found_;
  for (long row = 0; row < rows; row++, grad += size, out += size, found += size) {
    long i = 0;
    vec sum = all(0);
    for (; i + LANES <= size; i += LANES) sum += load(grad + i) * load(out + i);
    real dot = sum_of(sum);
    for (; i < size; i++) dot += grad[i] * out[i];
    for (i = 0; i + LANES <= size; i += LANES) store(found + i, load(out + i) * (load(grad + i) - dot));
    for (; i < size; i++) found[i] = out[i] * (grad[i] - dot);
  }
}
