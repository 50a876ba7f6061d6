/* Steps of optimizers: one pass over a parameter, its gradient and its state, from number `begin` to `end`.

   `arrays`: the parameter, the gradient, the state (NULL where there is none). `options`: numbers, in the order in
   which the reference of the same name (kernels/nn/optimizer_steps.py) takes them.

   Declares what the family puts into the table of table.h, for bindings/optimizer_steps.c, which counts both; what each expects is
   said beside it. */
#ifndef OPTIMIZER_STEPS_H
#define OPTIMIZER_STEPS_H

#define STEP(K, name) K(name, void, (void *const *arrays, const double *options, long begin, long end))
#define OPTIMIZER_STEPS(K) \
  STEP(K, sgd_step) STEP(K, adam_step) STEP(K, nadam_step) STEP(K, radam_step) STEP(K, adamax_step) \
  STEP(K, adagrad_step) STEP(K, rmsprop_step) STEP(K, adadelta_step) STEP(K, asgd_step) STEP(K, rprop_step) \
  STEP(K, scale_in_place) \
  K(sum_of_squares, double, (const void *x, long size))

enum { STEP_ARRAYS = 5, STEP_OPTIONS = 9 };

#endif
