/* The pool of threads of pool.h; on Windows there is none, and all is done by the caller.

   Called by the kernels' bindings, with or without the GIL; knows nothing of Python, raises nothing. Where no thread can be
   started, those that run do all the work, in the end the caller alone. */
#include "pool.h"

#if defined(_WIN32)

static int threads = 1;
void pool_run(part_function run, void *job, long count, long grain) {
  (void)grain;
  if (count > 0) run(job, 0, count);
}
int pool_setup(void) { return 0; }
void pool_set_threads(int count) { threads = count; }
int pool_threads(void) { return threads; }

#else

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

#define MOST 256
#define SPINS 20000

static pthread_mutex_t busy = PTHREAD_MUTEX_INITIALIZER;  /* held by the thread whose job runs */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;  /* guards sleeping and waking */
static pthread_cond_t wake = PTHREAD_COND_INITIALIZER;
static atomic_int wanted = 1; /* threads; set while workers read it */
static int running = 0, sleeping = 0;
static atomic_long ticket; /* counts jobs; a worker that sees it change looks for work */
static atomic_long joined; /* workers inside the present job; negative: closed */

static struct {
  part_function run;
  void *job;
  long count, part;
  atomic_long next;
} now;

static inline void rest(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

static void take_parts(void) {
  for (;;) {
    long begin = atomic_fetch_add(&now.next, now.part);
    if (begin >= now.count) return;
    long end = begin + now.part;
    now.run(now.job, begin, end < now.count ? end : now.count);
  }
}

/* Enter the present job unless it is closed; a closed job's numbers may no longer be read. */
static int join_job(void) {
  long inside = atomic_load(&joined);
  while (inside >= 0 && inside < wanted - 1)
    if (atomic_compare_exchange_weak(&joined, &inside, inside + 1)) return 1;
  return 0;
}

static void *worker(void *unused) {
  long seen = (long)(intptr_t)unused;
  for (;;) {
    for (int spin = 0; atomic_load(&ticket) == seen; spin++) {
      rest();
      if (spin < SPINS) continue;
      pthread_mutex_lock(&lock);
      sleeping++;
      while (atomic_load(&ticket) == seen) pthread_cond_wait(&wake, &lock);
      sleeping--;
      pthread_mutex_unlock(&lock);
    }
    seen = atomic_load(&ticket);
    if (join_job()) {
      take_parts();
      atomic_fetch_sub(&joined, 1);
    }
  }
  return 0;
}

static void before_fork(void) { pthread_mutex_lock(&busy); }
static void in_parent(void) { pthread_mutex_unlock(&busy); }
static void in_child(void) { /* the workers were not copied; they are started anew when there is work */
  pthread_mutex_init(&busy, 0);
  pthread_mutex_init(&lock, 0);
  pthread_cond_init(&wake, 0);
  running = sleeping = 0;
  atomic_store(&joined, -1);
}

int pool_setup(void) {
  atomic_store(&joined, -1);
  return pthread_atfork(before_fork, in_parent, in_child);
}

static void start_workers(void) {
  while (running < wanted - 1) {
    pthread_t thread;
    pthread_attr_t detached;
    if (pthread_attr_init(&detached)) return;
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    const int failed = pthread_create(&thread, &detached, worker, (void *)(intptr_t)atomic_load(&ticket));
    pthread_attr_destroy(&detached);
    if (failed) return;
    running++;
  }
}

void pool_run(part_function run, void *job, long count, long grain) {
  if (count <= 0) return;
  if (wanted < 2 || count <= grain || pthread_mutex_trylock(&busy)) {
    run(job, 0, count);
    return;
  }
  start_workers();
  long part = count / (4L * wanted);
  now.run = run, now.job = job, now.count = count, now.part = part > grain ? part : grain;
  atomic_store(&now.next, 0);
  atomic_store(&joined, 0);
  atomic_fetch_add(&ticket, 1);
  pthread_mutex_lock(&lock);
  if (sleeping) pthread_cond_broadcast(&wake);
  pthread_mutex_unlock(&lock);
  take_parts();
  long none = 0; /* close the job once nobody is inside; who comes later stays out */
  while (!atomic_compare_exchange_weak(&joined, &none, -1)) {
    none = 0;
    rest();
  }
  pthread_mutex_unlock(&busy);
}

/* Threads beyond the number wanted stay, and stay out. */
void pool_set_threads(int count) { wanted = count < 1 ? 1 : count > MOST ? MOST : count; }
int pool_threads(void) { return wanted; }

#endif
