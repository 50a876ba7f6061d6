"""Products of matrices, factorizations, solvers, Fourier transforms."""
