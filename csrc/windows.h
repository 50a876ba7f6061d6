/* Convolution, pooling: what slides over images. */
#ifndef WINDOWS_H
#define WINDOWS_H

#define WINDOWS(K)

#endif
