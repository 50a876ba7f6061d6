/* Convolution: what slides over images.

   Declares what the family puts into the table of table.h, for bindings/windows.c, which pads and packs; what each expects
   is said beside it. */
#ifndef WINDOWS_H
#define WINDOWS_H

/* One group of one image, or of some of its rows, laid flat: numbers in a channel of the padded input, in a row of it,
   and where, from a place on, the elements of the kernel are met. Places are counted along padded rows; those at the end
   of each row, where the kernel would reach over it, are computed and not kept. */
struct slide {
  long channels, plane, width;
  long taps;
  const long *tap;
};

/* How a level cuts a product: outputs and taps in a tile of `slide_gradient`, outputs in one of `slide`;
   those called `one` compute one output, as where each channel has a kernel of its own. */
struct slide_tiles {
  long outs, gradient_outs, gradient_taps, taps_of_one, lanes;
};

#define WINDOWS(K) \
  K(slide_tiles, struct slide_tiles, (void)) \
  K(slide_places, void, (const struct slide *s, const void *x, const void *panel, const void *bias, void *out, long places)) \
  K(slide_one, void, (const struct slide *s, const void *x, const void *panel, const void *bias, void *out, long places)) \
  K(slide_gradient, void, \
    (const void *x, long image, const void *grad, long grad_row, long grad_image, long images, long places, \
     const long *met, void *total, long total_row, long outs, long taps)) \
  K(slide_gradient_one, void, \
    (const void *x, long image, const void *grad, long grad_row, long grad_image, long images, long places, \
     const long *met, void *total, long total_row, long outs, long taps))

#endif
