/* Products of matrices, and attention. Included by kernels.c. */
