/* The Python bindings of windows.c: convolutions of stride 1 over one or two dims, and their gradients for the weight.

   Checks every size for overflow before memory is taken for it; scratch is freed before it returns, also where some
   thread had none. NOTE [Bindings]. */
#include <stdatomic.h>

#include "bindings.h"

enum { BAND_BYTES = 256 * 1024, GROUP_BYTES = 4 * 1024 * 1024, CHUNK_PLACES = 8192, MOST_TAPS = 1024 };
#define MOST_COPIED (1l << 40) /* numbers: no machine has memory for more, and products with sizes of items fit */

struct convolution {
  const struct table *kernels;
  const char *input;   /* (batch, groups · ins, height, width) */
  char *output;        /* (batch, groups · outs, places, places) */
  char *panels;        /* weights by tiles of outputs: (groups, tiles, ins · taps, outs of a tile); then as many biases */
  char *flat, *arrived; /* `weight_gradient`: padded images and gradients */
  long item, batch, groups, ins, outs, size[2], kernel[2], before[2], dilation[2], places[2];
  long padded;         /* numbers in a padded row */
  long rows, bands;    /* of places, taken at once by `convolve`; how many times */
  long taps, *tap;     /* where the elements of the kernel are met, in a plane */
  long image, row;     /* `weight_gradient`: numbers in a padded image, in an output's gradient */
  long first, images, group, *met;
  long tile, gradient_outs, gradient_taps; /* of outputs in `convolve`; of outputs and taps in `weight_gradient` */
  atomic_int failed;   /* no memory for scratch */
};

/* Read one or two numbers below 2^31, for the height and the width; one dim is a plane of height 1. */
static int take_sizes(PyObject *object, int dims, long missing, long *found) {
  const int listed = PyList_CheckExact(object), good = listed || PyTuple_CheckExact(object);
  found[0] = missing;
  if (!good || (listed ? PyList_GET_SIZE(object) : PyTuple_GET_SIZE(object)) != dims) return 0;
  for (int i = 0; i < dims; i++) {
    PyObject *one = listed ? PyList_GET_ITEM(object, i) : PyTuple_GET_ITEM(object, i);
    long value = PyLong_CheckExact(one) ? PyLong_AsLong(one) : -1;
    if (PyErr_Occurred()) PyErr_Clear();
    if (value < 0 || value >= INT32_MAX) return 0;
    found[2 - dims + i] = value;
  }
  return 1;
}

static int is_one(PyObject *stride, int dims) {
  long found[2];
  return take_sizes(stride, dims, 1, found) && found[0] == 1 && found[1] == 1;
}

static void shape_of(PyArrayObject *array, int dims, long *found) {
  found[0] = 1;
  for (int i = 0; i < dims; i++) found[2 - dims + i] = PyArray_DIM(array, 2 + i);
}

static long larger_of(long a, long b) { return a > b ? a : b; }
static long rounded_up(long n, long to) { return (n + to - 1) / to * to; }

/* Whether a padded image, and the gradients of its places, are of a size that can be counted and multiplied. */
static int is_laid_out(const struct convolution *c) {
  long rows = c->places[0] + c->dilation[0] * (c->kernel[0] - 1), numbers;
  if (c->before[0] + c->size[0] > rows) rows = c->before[0] + c->size[0];
  return !__builtin_mul_overflow(c->padded, rows, &numbers) && !__builtin_mul_overflow(numbers, c->ins + c->outs + 64, &numbers) &&
         numbers < MOST_COPIED;
}

/* Whether there is something to do, all of it inside the padded image; fills in what follows from the sizes. */
static int prepare(struct convolution *c) {
  if (c->kernel[0] > MOST_TAPS || c->kernel[1] > MOST_TAPS) return 0;
  long reach = c->places[1] - 1 + c->dilation[1] * (c->kernel[1] - 1) + 1;
  c->padded = larger_of(reach, c->before[1] + c->size[1]);
  c->taps = c->kernel[0] * c->kernel[1];
  return c->batch && c->groups && c->ins && c->outs && c->taps > 1 && c->taps <= MOST_TAPS && c->size[0] && c->size[1] &&
         c->places[0] && c->places[1] && c->dilation[0] && c->dilation[1] && is_laid_out(c);
}

static void meet_taps(struct convolution *c) {
  for (long i = 0; i < c->taps; i++)
    c->tap[i] = i / c->kernel[1] * c->dilation[0] * c->padded + i % c->kernel[1] * c->dilation[1];
}

/* Lay `ins` channels flat, from padded row `first` on, with zeros around. */
static void lay(const struct convolution *c, const char *channels, char *flat, long first, long rows) {
  memset(flat, 0, (size_t)(c->ins * rows * c->padded * c->item));
  long begin = larger_of(first, c->before[0]), end = c->before[0] + c->size[0];
  if (end > first + rows) end = first + rows;
  for (long channel = 0; channel < c->ins; channel++)
    for (long row = begin; row < end; row++)
      memcpy(flat + ((channel * rows + row - first) * c->padded + c->before[1]) * c->item,
             channels + (channel * c->size[0] + row - c->before[0]) * c->size[1] * c->item, (size_t)(c->size[1] * c->item));
}

/* --- convolve -------------------------------------------------------------------------------------------------------- */

/* One band of rows of one image and group; `flat` and `found` are scratch. */
static void convolve_band(const struct convolution *c, long image, long group, long band, char *flat, char *found) {
  struct slide_tiles tiles = c->kernels->slide_tiles();
  long first = band * c->rows, rows = c->places[0] - first < c->rows ? c->places[0] - first : c->rows;
  long padded_rows = rows + c->dilation[0] * (c->kernel[0] - 1), area = c->places[0] * c->places[1];
  long places = (rows - 1) * c->padded + c->places[1], width = rounded_up(places, tiles.lanes);
  lay(c, c->input + (image * c->groups + group) * c->ins * c->size[0] * c->size[1] * c->item, flat, first, padded_rows);
  struct slide slide = {c->ins, padded_rows * c->padded, c->padded, c->taps, c->tap};
  long panels = (c->outs + c->tile - 1) / c->tile, panel = c->ins * c->taps * c->tile;
  char *biases = c->panels + c->groups * panels * panel * c->item;
  for (long p = 0; p < panels; p++) {
    long at = group * panels + p, outs = c->outs - p * c->tile < c->tile ? c->outs - p * c->tile : c->tile;
    (c->tile == 1 ? c->kernels->slide_one : c->kernels->slide_places)(
        &slide, flat, c->panels + at * panel * c->item, biases + at * c->tile * c->item, found, places);
    char *out = c->output + (((image * c->groups + group) * c->outs + p * c->tile) * area + first * c->places[1]) * c->item;
    for (long o = 0; o < outs; o++)
      for (long row = 0; row < rows; row++)
        memcpy(out + (o * area + row * c->places[1]) * c->item, found + (o * width + row * c->padded) * c->item,
               (size_t)(c->places[1] * c->item));
  }
}

static void convolve_part(void *job, long begin, long end) {
  struct convolution *c = job;
  struct slide_tiles tiles = c->kernels->slide_tiles();
  long rows = c->rows + c->dilation[0] * (c->kernel[0] - 1), plane = c->ins * rows * c->padded + tiles.lanes;
  char *flat = malloc((size_t)((plane + c->tile * (c->rows * c->padded + tiles.lanes)) * c->item));
  if (!flat) {
    c->failed = 1;
    return;
  }
  memset(flat + (plane - tiles.lanes) * c->item, 0, (size_t)(tiles.lanes * c->item));
  for (; begin < end; begin++)
    for (long group = 0; group < c->groups; group++)
      convolve_band(c, begin / c->bands, group, begin % c->bands, flat, flat + plane * c->item);
  free(flat);
}

/* Lay the weights of each tile of outputs side by side, and zeros where a tile is not full. */
static void pack(struct convolution *c, const char *weight, const char *bias) {
  long tile = c->tile, panels = (c->outs + tile - 1) / tile, depth = c->ins * c->taps;
  memset(c->panels, 0, (size_t)(c->groups * panels * (depth + 1) * tile * c->item));
  char *biases = c->panels + c->groups * panels * depth * tile * c->item;
  for (long out = 0; out < c->groups * c->outs; out++) {
    long panel = out / c->outs * panels + out % c->outs / tile, lane = out % c->outs % tile;
    char *to = c->panels + (panel * depth * tile + lane) * c->item;
    for (long k = 0; k < depth; k++) memcpy(to + k * tile * c->item, weight + (out * depth + k) * c->item, (size_t)c->item);
    if (bias) memcpy(biases + (panel * tile + lane) * c->item, bias + out * c->item, (size_t)c->item);
  }
}

/* convolve(input, weight, bias, stride, before, dilation, groups, places) */
static PyObject *convolve(PyObject *const *args, Py_ssize_t count) {
  int kind;
  PyArrayObject *input = count == 8 ? plain(args[0], &kind) : NULL, *weight = input ? plain_of(args[1], kind) : NULL;
  PyArrayObject *bias = weight && args[2] != Py_None ? plain_of(args[2], kind) : NULL;
  if (!weight || (args[2] != Py_None && !bias)) return DECLINED;
  int dims = PyArray_NDIM(input) - 2;
  struct convolution c = {.kernels = table_of(kind), .item = PyArray_ITEMSIZE(input), .input = PyArray_DATA(input)};
  if (dims < 1 || dims > 2 || PyArray_NDIM(weight) != dims + 2 || !is_one(args[3], dims)) return DECLINED;
  if (!take_sizes(args[4], dims, 0, c.before) || !take_sizes(args[5], dims, 1, c.dilation)) return DECLINED;
  if (!take_sizes(args[7], dims, 1, c.places)) return DECLINED;
  c.groups = PyLong_CheckExact(args[6]) ? PyLong_AsLong(args[6]) : -1;
  if (c.groups < 1 || c.groups > PyArray_DIM(weight, 0) || PyArray_DIM(weight, 0) % c.groups) return PyErr_Clear(), DECLINED;
  c.batch = PyArray_DIM(input, 0), c.ins = PyArray_DIM(weight, 1), c.outs = PyArray_DIM(weight, 0) / c.groups;
  shape_of(input, dims, c.size), shape_of(weight, dims, c.kernel);
  if (PyArray_DIM(input, 1) != c.groups * c.ins || (bias && PyArray_SIZE(bias) != c.groups * c.outs)) return DECLINED;
  if (!prepare(&c) || (c.outs < 3 && c.ins > 2)) return DECLINED;
  long taps[MOST_TAPS], tile = c.outs < 3 ? 1 : c.kernels->slide_tiles().outs, panels = (c.outs + tile - 1) / tile;
  c.tap = taps, c.tile = tile, meet_taps(&c);
  long fitting = BAND_BYTES / (c.ins * c.padded * c.item) - c.dilation[0] * (c.kernel[0] - 1);
  c.rows = fitting < 4 ? 4 : fitting > c.places[0] ? c.places[0] : fitting;
  c.bands = (c.places[0] + c.rows - 1) / c.rows;
  npy_intp shape[4] = {c.batch, c.groups * c.outs, c.places[2 - dims], c.places[1]};
  PyArrayObject *found = (PyArrayObject *)PyArray_EMPTY(dims + 2, shape, kind, 0);
  c.panels = malloc((size_t)(c.groups * panels * (c.ins * c.taps + 1) * tile * c.item));
  if (found && c.panels) {
    c.output = PyArray_DATA(found);
    pack(&c, PyArray_DATA(weight), bias ? PyArray_DATA(bias) : NULL);
    run_parts(convolve_part, &c, c.batch * c.bands, 1, PyArray_SIZE(found) * c.ins * c.taps);
  }
  if (found && (!c.panels || c.failed)) {
    Py_CLEAR(found);
    PyErr_NoMemory();
  }
  free(c.panels);
  return (PyObject *)found;
}

/* --- weight_gradient -------------------------------------------------------------------------------------------------- */

/* Lay images and gradients flat; at places that are none the gradient is 0. */
static void lay_part(void *job, long begin, long end) {
  const struct convolution *c = job;
  long area = c->places[0] * c->places[1], outs = rounded_up(c->outs, c->gradient_outs);
  long rows = c->places[0] + c->dilation[0] * (c->kernel[0] - 1), lanes = c->kernels->slide_tiles().lanes;
  for (long i = begin; i < end; i++) {
    long from = (c->first + i) * c->groups + c->group;
    char *flat = c->flat + i * c->image * c->item, *arrived = c->arrived + i * outs * c->row * c->item;
    lay(c, c->input + from * c->ins * c->size[0] * c->size[1] * c->item, flat, 0, rows);
    memset(flat + (c->image - lanes) * c->item, 0, (size_t)(lanes * c->item));
    memset(arrived, 0, (size_t)(outs * c->row * c->item));
    for (long o = 0; o < c->outs; o++)
      for (long row = 0; row < c->places[0]; row++)
        memcpy(arrived + (o * c->row + row * c->padded) * c->item,
               c->output + ((from * c->outs + o) * area + row * c->places[1]) * c->item, (size_t)(c->places[1] * c->item));
  }
}

/* Tiles of outputs: for each few thousand places, all elements of the kernel. */
static void gradient_part(void *job, long begin, long end) {
  const struct convolution *c = job;
  long depth = c->ins * c->taps, outs = rounded_up(c->outs, c->gradient_outs), together = CHUNK_PLACES / c->row;
  if (together < 1) together = 1;
  for (long image = 0; image < c->images; image += together)
    for (long at = 0; at < c->row; at += CHUNK_PLACES) {
      long images = c->images - image < together ? c->images - image : together;
      long places = c->row - at < CHUNK_PLACES ? c->row - at : CHUNK_PLACES;
      for (long tile = begin; tile < end; tile++)
        for (long k = 0; k < depth; k += c->gradient_taps) {
          long out = tile * c->gradient_outs;
          (c->gradient_outs == 1 ? c->kernels->slide_gradient_one : c->kernels->slide_gradient)(
                                     c->flat + (image * c->image + at) * c->item, c->image,
                                     c->arrived + ((image * outs + out) * c->row + at) * c->item, c->row, outs * c->row,
                                     images, places, c->met + k,
                                     c->panels + ((c->group * c->outs + out) * depth + k) * c->item, depth, c->outs - out,
                                     depth - k);
        }
    }
}

/* Add up the gradients of all images, as many at once as fit the scratch. */
static int add_images(struct convolution *c) {
  struct slide_tiles tiles = c->kernels->slide_tiles();
  long rows = c->places[0] + c->dilation[0] * (c->kernel[0] - 1), outs = rounded_up(c->outs, c->gradient_outs);
  c->row = rounded_up((c->places[0] - 1) * c->padded + c->places[1], tiles.lanes);
  c->image = c->ins * rows * c->padded + tiles.lanes;
  long bytes = (c->image + outs * c->row) * c->item, most = GROUP_BYTES / bytes;
  most = most < 1 ? 1 : most > c->batch ? c->batch : most;
  c->flat = malloc((size_t)(most * bytes));
  if (!c->flat) return 0;
  c->arrived = c->flat + most * c->image * c->item;
  for (c->group = 0; c->group < c->groups; c->group++)
    for (c->first = 0; c->first < c->batch; c->first += most) {
      c->images = c->batch - c->first < most ? c->batch - c->first : most;
      run_parts(lay_part, c, c->images, 1, c->images * c->image);
      run_parts(gradient_part, c, outs / c->gradient_outs, 1, c->images * c->row * outs * c->ins * c->taps);
    }
  free(c->flat);
  return 1;
}

/* weight_gradient(grad, input, kernel, stride, before, dilation, groups) */
static PyObject *weight_gradient(PyObject *const *args, Py_ssize_t count) {
  int kind;
  PyArrayObject *grad = count == 7 ? plain(args[0], &kind) : NULL, *input = grad ? plain_of(args[1], kind) : NULL;
  if (!input) return DECLINED;
  int dims = PyArray_NDIM(input) - 2;
  struct convolution c = {.kernels = table_of(kind), .item = PyArray_ITEMSIZE(input), .input = PyArray_DATA(input),
                          .output = PyArray_DATA(grad)};
  if (dims < 1 || dims > 2 || PyArray_NDIM(grad) != dims + 2 || !is_one(args[3], dims)) return DECLINED;
  if (!take_sizes(args[2], dims, 1, c.kernel) || !take_sizes(args[4], dims, 0, c.before)) return DECLINED;
  if (!take_sizes(args[5], dims, 1, c.dilation)) return DECLINED;
  c.groups = PyLong_CheckExact(args[6]) ? PyLong_AsLong(args[6]) : -1;
  if (c.groups < 1 || PyArray_DIM(input, 1) % c.groups || PyArray_DIM(grad, 1) % c.groups) return PyErr_Clear(), DECLINED;
  c.batch = PyArray_DIM(input, 0), c.ins = PyArray_DIM(input, 1) / c.groups, c.outs = PyArray_DIM(grad, 1) / c.groups;
  shape_of(input, dims, c.size), shape_of(grad, dims, c.places);
  if (PyArray_DIM(grad, 0) != c.batch || !prepare(&c)) return DECLINED;
  struct slide_tiles tiles = c.kernels->slide_tiles();
  c.gradient_outs = c.outs == 1 ? 1 : tiles.gradient_outs, c.gradient_taps = c.outs == 1 ? tiles.taps_of_one : tiles.gradient_taps;
  long taps[MOST_TAPS], depth = c.ins * c.taps;
  c.tap = taps, meet_taps(&c);
  npy_intp shape[4] = {c.groups * c.outs, c.ins, c.kernel[2 - dims], c.kernel[1]};
  PyArrayObject *found = (PyArrayObject *)PyArray_ZEROS(dims + 2, shape, kind, 0);
  long plane = (c.places[0] + c.dilation[0] * (c.kernel[0] - 1)) * c.padded;
  c.met = calloc((size_t)depth + 16, sizeof *c.met); /* the last tile may reach beyond, and then meets anything */
  for (long k = 0; c.met && k < depth; k++) c.met[k] = k / c.taps * plane + taps[k % c.taps];
  if (found) c.panels = PyArray_DATA(found);
  if (found && (!c.met || !add_images(&c))) {
    Py_CLEAR(found);
    PyErr_NoMemory();
  }
  free(c.met);
  return (PyObject *)found;
}

const struct binding window_bindings[] = {{"convolve", convolve}, {"weight_gradient", weight_gradient}, {NULL, NULL}};
