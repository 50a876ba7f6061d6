/* The Python face of matrices.c. */
#include "face.h"

const struct face matrix_faces[] = {{NULL, NULL}};
