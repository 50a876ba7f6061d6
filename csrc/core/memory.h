/* The memory of NumPy's arrays, kept and given out again: a handler for NumPy (`context` is not used), and two calls
   for module.c.

   Needs the GIL. Returns NULL where there is no memory, raises nothing, and takes back only what it gave or what
   malloc gave. */
#ifndef MEMORY_H
#define MEMORY_H
#include <stddef.h>

void *memory_take(void *context, size_t size);
void *memory_take_zeros(void *context, size_t count, size_t size);
void *memory_resize(void *context, void *at, size_t size);
void memory_put(void *context, void *at, size_t size);
void memory_give_back(void); /* all that is kept goes back to the system */
size_t memory_kept(void);    /* bytes */

#endif
