/* Memory for NumPy's arrays: freed blocks are kept and given out again, since fresh pages cost more than what is
   computed in them (3 us for 4 KiB on a virtual machine, several times what it takes to write them).

   No more is held than was in use at once before: when fresh memory would go beyond that, kept blocks are given back.
   NumPy calls all of this with the GIL, which guards the tables. Sizes are those of malloc, never what the caller
   says; NULL where there is no memory. See NumPy's NEP 49 for how a handler is installed; it holds for arrays made in
   the context (and so in the thread) that installed it. */
#include <stdlib.h>
#include <string.h>
#if defined(_WIN32)
#include <malloc.h>
#define usable_size(at) _msize(at)
#elif defined(__APPLE__)
#include <malloc/malloc.h>
#include <sys/mman.h>
#define usable_size(at) malloc_size(at)
#else
#include <malloc.h>
#include <sys/mman.h>
#define usable_size(at) malloc_usable_size(at)
#endif

#include "memory.h"

#define SMALL_STEP 64 /* small blocks: multiples of this, up to SMALL_KINDS of them */
#define SMALL_KINDS 16
#define SMALL_KEPT 32
#define LEAST_LARGE (32 << 10)
#define KINDS 256 /* sizes of large blocks: eight to a power of two */
#define KINDS_ABOVE 4 /* a block up to so many sizes larger, at most 1.5 times, serves as well */
#define HUGE_PAGES (4 << 20) /* blocks from this size on lie on pages of 2 MiB, where the system has them */
#define HUGE_PAGE (2 << 20)
#define ALIGNED 64

struct block {
  struct block *next;
};

static struct {
  void *block[SMALL_KEPT];
  int count;
} small[SMALL_KINDS + 1];

static struct block *large[KINDS];
static size_t in_use, kept, most_in_use;

/* The kind of a large size, and what is really taken for it. */
static int kind_of(size_t size, size_t *whole) {
  int power = 63 - __builtin_clzll((unsigned long long)(size - 1));
  size_t step = (size_t)1 << (power > 3 ? power - 3 : 0), eighths = (size + step - 1) / step;
  *whole = eighths * step;
  return (power - 14) * 8 + (int)eighths - 8;
}

/* The kind that a block of this size can serve. */
static int kind_served(size_t size) {
  int power = 63 - __builtin_clzll((unsigned long long)size);
  return (power - 14) * 8 + (int)(size >> (power - 3)) - 8;
}

static size_t size_of_kind(int kind) {
  int power = kind / 8 + 14, eighths = kind % 8 + 8;
  if (kind % 8 == 0) power -= 1, eighths = 16;
  return (size_t)eighths << (power - 3);
}

/* Large blocks are mapped by themselves, on huge pages: malloc would cut them from what others used and broke up. */
#define MOST_MAPPED 1024 /* a power of two; further ones come from malloc */
static struct {
  char *at;
  size_t size;
} mapped[MOST_MAPPED];
static int mapped_count;

static size_t place_of(const void *at) { return ((size_t)at >> 21) * 0x9E3779B97F4A7C15ull >> 40 & (MOST_MAPPED - 1); }

/* Where a block stands in the table, or a free place for it. */
static size_t find_mapped(const void *at) {
  size_t place = place_of(at);
  while (mapped[place].at && mapped[place].at != at) place = (place + 1) & (MOST_MAPPED - 1);
  return place;
}

static size_t size_of_block(void *at) {
  if (!((size_t)at & (HUGE_PAGE - 1))) {
    size_t place = find_mapped(at);
    if (mapped[place].at) return mapped[place].size;
  }
  return usable_size(at);
}

static void *fresh(size_t size) {
#if defined(_WIN32)
  return malloc(size);
#else
  void *made = NULL;
#if defined(MADV_HUGEPAGE)
  if (size >= HUGE_PAGES && mapped_count < MOST_MAPPED / 2) {
    size_t whole = (size + HUGE_PAGE - 1) & ~(size_t)(HUGE_PAGE - 1);
    char *room = mmap(NULL, whole + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED) return NULL;
    char *start = (char *)(((size_t)room + HUGE_PAGE - 1) & ~(size_t)(HUGE_PAGE - 1));
    if (start > room) munmap(room, start - room);
    if (room + HUGE_PAGE > start) munmap(start + whole, room + HUGE_PAGE - start);
    madvise(start, whole, MADV_HUGEPAGE);
    size_t place = find_mapped(start);
    mapped[place].at = start;
    mapped[place].size = size;
    mapped_count++;
    return start;
  }
#endif
  return posix_memalign(&made, ALIGNED, size) ? NULL : made;
#endif
}

static void give(void *at) {
#if defined(MADV_HUGEPAGE)
  size_t place = (size_t)at & (HUGE_PAGE - 1) ? 0 : find_mapped(at);
  if (!((size_t)at & (HUGE_PAGE - 1)) && mapped[place].at) {
    munmap(at, (mapped[place].size + HUGE_PAGE - 1) & ~(size_t)(HUGE_PAGE - 1));
    mapped_count--;
    for (size_t next = place;;) { /* close the gap, so that who was moved past this place is found */
      mapped[place].at = NULL;
      do {
        next = (next + 1) & (MOST_MAPPED - 1);
        if (!mapped[next].at) return;
      } while (((next - place_of(mapped[next].at)) & (MOST_MAPPED - 1)) < ((next - place) & (MOST_MAPPED - 1)));
      mapped[place] = mapped[next];
      place = next;
    }
  }
#endif
  free(at);
}

/* Give kept blocks back, the largest first, until no more than `most` are held. */
static void give_back(size_t most) {
  for (int kind = KINDS - 1; kind >= 0 && kept > most; kind--)
    while (large[kind] && kept > most) {
      struct block *block = large[kind];
      large[kind] = block->next;
      kept -= size_of_kind(kind);
      give(block);
    }
}

static void *take_large(size_t size) {
  size_t whole;
  int kind = kind_of(size, &whole), found = kind;
  while (found < KINDS && found < kind + KINDS_ABOVE && !large[found]) found++;
  struct block *block = found < KINDS ? large[found] : NULL;
  if (block) {
    large[found] = block->next;
    whole = size_of_kind(found);
    kept -= whole;
  } else {
    size_t room = most_in_use > in_use + whole ? most_in_use - in_use - whole : 0;
    if (kept > room) give_back(room);
    block = fresh(whole);
    if (!block && kept) {
      give_back(0);
      block = fresh(whole);
    }
    if (!block) return NULL;
  }
  in_use += whole;
  if (in_use > most_in_use) most_in_use = in_use;
  return block;
}

static void put_large(void *at, size_t size) {
  int kind = kind_served(size);
  size_t whole = size_of_kind(kind);
  in_use -= whole < in_use ? whole : in_use;
  if (kind >= KINDS) {
    give(at);
    return;
  }
  struct block *block = at;
  block->next = large[kind];
  large[kind] = block;
  kept += whole;
}

void *memory_take(void *context, size_t size) {
  (void)context;
  if (size > LEAST_LARGE - ALIGNED) return take_large(size < LEAST_LARGE ? LEAST_LARGE : size);
  size_t kind = (size + SMALL_STEP - 1) / SMALL_STEP;
  if (kind <= SMALL_KINDS) {
    if (small[kind].count) return small[kind].block[--small[kind].count];
    size = kind ? kind * SMALL_STEP : SMALL_STEP;
  }
  return malloc(size);
}

/* What malloc gave counts, not what the caller says: so no block is ever taken for a larger one. */
void memory_put(void *context, void *at, size_t size) {
  (void)context, (void)size;
  if (!at) return;
  size_t held = size_of_block(at);
  if (held >= LEAST_LARGE) {
    put_large(at, held);
    return;
  }
  size_t kind = held / SMALL_STEP;
  if (kind <= SMALL_KINDS && small[kind].count < SMALL_KEPT)
    small[kind].block[small[kind].count++] = at;
  else
    free(at);
}

void *memory_take_zeros(void *context, size_t count, size_t size) {
  if (size && count > (size_t)-1 / size) return NULL;
  size_t bytes = count * size;
  void *made = memory_take(context, bytes);
  if (made) memset(made, 0, bytes);
  return made;
}

void *memory_resize(void *context, void *at, size_t size) {
  void *made = memory_take(context, size);
  if (made && at) {
    size_t held = size_of_block(at);
    memcpy(made, at, held < size ? held : size);
    memory_put(context, at, held);
  }
  return made;
}

void memory_give_back(void) {
  give_back(0);
  most_in_use = in_use;
}

size_t memory_kept(void) { return kept; }
