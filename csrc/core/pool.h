/* One pool of threads for all kernels: dynamic parts, spins briefly, sleeps otherwise, and survives fork.

   `run` must not call Python, take the GIL or fail: it notes a failure in its job. Parts are disjoint and lie in
   [0, count); nothing else is promised of which thread runs which part. */
#ifndef POOL_H
#define POOL_H

typedef void (*part_function)(void *job, long begin, long end);

/* Call `run(job, begin, end)` on parts of [0, count), each at least `grain` long, on all threads; return when all are
   done. While the pool is busy (another Python thread), or with one thread, all is done here. */
void pool_run(part_function run, void *job, long count, long grain);
/* To be called once, before all others; returns other than 0 if there is no memory. */
int pool_setup(void);
void pool_set_threads(int count);
int pool_threads(void);

#endif
