/* One number in, one number out; sums over them. */
#ifndef POINTWISE_H
#define POINTWISE_H

#define POINTWISE(K)

#endif
