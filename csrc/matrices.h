/* Products of matrices, and attention. */
#ifndef MATRICES_H
#define MATRICES_H

#define MATRICES(K)

#endif
