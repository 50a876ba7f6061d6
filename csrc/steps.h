/* Steps of optimisers. */
#ifndef STEPS_H
#define STEPS_H

#define STEPS(K)

#endif
