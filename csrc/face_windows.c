/* The Python face of windows.c. */
#include "face.h"

const struct face window_faces[] = {{NULL, NULL}};
