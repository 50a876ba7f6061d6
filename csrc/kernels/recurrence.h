/* Steps of recurrent layers: what follows and what precedes the product with the weight.

   Declares what the family puts into the table of table.h, for bindings/recurrence.c, which counts the arrays; what each
   expects is said beside it. */
#ifndef RECURRENCE_H
#define RECURRENCE_H

/* `arrays` are those of the reference of the same name (kernels/nn/recurrence.py), in its order; rows from begin to end. */
#define RECURRENT(K, name) K(name, void, (void *const *arrays, long size, long begin, long end))
#define RECURRENCE(K) \
  RECURRENT(K, lstm_step) RECURRENT(K, lstm_step_gradient) RECURRENT(K, gru_step) RECURRENT(K, gru_step_gradient)

enum { ROW_ARRAYS = 8 };

#endif
