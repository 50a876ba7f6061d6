/* Convolution, pooling: what slides over images. Included by kernels.c. */
