/* One number in, one number out; sums over them. Included by kernels.c. */
