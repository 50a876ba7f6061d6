/* The Mersenne Twister MT19937, word for word, and numbers made of its words.

   Source: M. Matsumoto and T. Nishimura, "Mersenne Twister", ACM Transactions on Modeling and Computer Simulation 8
   (1998). Word i is made of words i, i + 1 and i + 397 of the last round; so a whole vector of words is made at once.

   A state has 625 words of any values: the place of the next word is read once and checked here. Needs the GIL, which
   keeps two threads from drawing from one state. Included by kernels.c; called by bindings/random_numbers.c. NOTE [Kernels] in
   table.h. */

typedef uint32_t words __attribute__((vector_size(VECTOR_BYTES)));
#define WORDS_AT_ONCE ((long)(VECTOR_BYTES / sizeof(uint32_t)))
#define FAR_WORD 397
#define DRAWN_AT_ONCE 1024 /* words: they stay in the first cache until they are used */
#define BITS_OF_DOUBLE ((((uint64_t)1) << 53) - 1)

INLINE words load_words(const uint32_t *p) {
  words w;
  memcpy(&w, p, sizeof w);
  return w;
}
INLINE void store_words(uint32_t *p, words w) { memcpy(p, &w, sizeof w); }

#define TWISTED(here, next, far) \
  ((far) ^ ((((here) & 0x80000000u) | ((next) & 0x7fffffffu)) >> 1) ^ (-((next) & 1u) & 0x9908b0dfu))

/* Make `size` words anew; `far` is where the third word of the first lies. */
INLINE void twist_part(uint32_t *s, const uint32_t *far, int size) {
  int i = 0;
  for (; i + (int)WORDS_AT_ONCE <= size; i += (int)WORDS_AT_ONCE)
    store_words(s + i, TWISTED(load_words(s + i), load_words(s + i + 1), load_words(far + i)));
  for (; i < size; i++) s[i] = TWISTED(s[i], s[i + 1], far[i]);
}

static void twist(uint32_t *s) {
  const int ahead = TWISTER_WORDS - FAR_WORD;
  twist_part(s, s + FAR_WORD, ahead);
  twist_part(s + ahead, s, FAR_WORD - 1);
  s[TWISTER_WORDS - 1] = TWISTED(s[TWISTER_WORDS - 1], s[0], s[FAR_WORD - 1]);
}

#define TEMPERED(y) \
  do { \
    y ^= y >> 11; \
    y ^= (y << 7) & 0x9d2c5680u; \
    y ^= (y << 15) & 0xefc60000u; \
    y ^= y >> 18; \
  } while (0)

/* Write the next words. */
static void next_words(uint32_t *state, uint32_t *out, long size) {
  while (size) {
    uint32_t at = __atomic_load_n(state + TWISTER_WORDS, __ATOMIC_RELAXED); /* once: NOTE [Arrays that change] */
    if (at >= TWISTER_WORDS) {
      twist(state);
      at = 0;
    }
    const uint32_t *from = state + at;
    long part = TWISTER_WORDS - (long)at, i = 0;
    part = part < size ? part : size;
    for (; i + WORDS_AT_ONCE <= part; i += WORDS_AT_ONCE) {
      words y = load_words(from + i);
      TEMPERED(y);
      store_words(out + i, y);
    }
    for (; i < part; i++) {
      uint32_t y = from[i];
      TEMPERED(y);
      out[i] = y;
    }
    state[TWISTER_WORDS] = at + (uint32_t)part;
    out += part, size -= part;
  }
}

static void N(random_words)(uint32_t *state, uint64_t *out, long size) {
  uint32_t drawn[DRAWN_AT_ONCE];
  for (long count; size; size -= count, out += count) {
    count = size < DRAWN_AT_ONCE ? size : DRAWN_AT_ONCE;
    next_words(state, drawn, count);
    for (long i = 0; i < count; i++) out[i] = drawn[i];
  }
}

/* Two words as one number of 53 bits, the first word above. */
INLINE uint64_t wide_bits(const uint32_t *drawn, long i) {
  return ((uint64_t)drawn[2 * i] << 32 | drawn[2 * i + 1]) & BITS_OF_DOUBLE;
}

static void N(random_units)(uint32_t *state, void *out_, long size) {
  real *out = out_;
  uint32_t drawn[DRAWN_AT_ONCE];
  const long words_of_one = REAL_BITS / 32;
  for (long count; size; size -= count, out += count) {
    count = size < DRAWN_AT_ONCE / words_of_one ? size : DRAWN_AT_ONCE / words_of_one;
    next_words(state, drawn, count * words_of_one);
#if REAL_BITS == 32
    for (long i = 0; i < count; i++) out[i] = (real)(int32_t)(drawn[i] & 0xffffffu) * 0x1p-24f;
#else
    for (long i = 0; i < count; i++) out[i] = (real)(int64_t)wide_bits(drawn, i) * 0x1p-53;
#endif
  }
}

static void N(random_choices)(uint32_t *state, uint64_t limit, unsigned char *out, long size) {
  uint32_t drawn[DRAWN_AT_ONCE];
  for (long count; size; size -= count, out += count) {
    count = size < DRAWN_AT_ONCE / 2 ? size : DRAWN_AT_ONCE / 2;
    next_words(state, drawn, 2 * count);
    for (long i = 0; i < count; i++) out[i] = wide_bits(drawn, i) < limit;
  }
}

/* `value` with a probability, 0 else */
static void N(random_noise)(uint32_t *state, uint64_t limit, double value_, void *out_, long size) {
  real *out = out_, value = (real)value_;
  uint32_t drawn[DRAWN_AT_ONCE];
  for (long count; size; size -= count, out += count) {
    count = size < DRAWN_AT_ONCE / 2 ? size : DRAWN_AT_ONCE / 2;
    next_words(state, drawn, 2 * count);
    for (long i = 0; i < count; i++) out[i] = wide_bits(drawn, i) < limit ? value : 0;
  }
}
