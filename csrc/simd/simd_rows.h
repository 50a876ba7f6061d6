/* Vectors for work along rows: the end of a row, which fills no whole vector, and sums in four strands.

   For kernels only, which have included simd/simd.h. Reads and writes what belongs to the row and nothing behind it. */
#ifndef SIMD_ROWS_H
#define SIMD_ROWS_H

#include "simd.h"
#if defined(__SSE2__)
#include <immintrin.h>
#endif

INLINE ivec numbered(void) {
  ivec n;
  for (long i = 0; i < LANES; i++) n[i] = (integer)i;
  return n;
}
/* All bits set in the first n lanes. */
INLINE ivec first_lanes(long n) { return numbered() < ((integer)n - (ivec){0}); }

/* As load_part and store_part, by the machine's masks where it has them. */
INLINE vec load_first(const real *p, long n, real fill) {
#if defined(__AVX512F__) && VECTOR_BYTES == 64 && REAL_BITS == 32
  return (vec)_mm512_mask_loadu_ps((__m512)all(fill), (__mmask16)((1u << n) - 1), p);
#elif defined(__AVX512F__) && VECTOR_BYTES == 64
  return (vec)_mm512_mask_loadu_pd((__m512d)all(fill), (__mmask8)((1u << n) - 1), p);
#elif defined(__AVX2__) && VECTOR_BYTES == 32 && REAL_BITS == 32
  ivec first = first_lanes(n);
  return choose(first, (vec)_mm256_maskload_ps(p, (__m256i)first), all(fill));
#elif defined(__AVX2__) && VECTOR_BYTES == 32
  ivec first = first_lanes(n);
  return choose(first, (vec)_mm256_maskload_pd(p, (__m256i)first), all(fill));
#else
  return load_part(p, n, fill);
#endif
}
INLINE void store_first(real *p, vec v, long n) {
#if defined(__AVX512F__) && VECTOR_BYTES == 64 && REAL_BITS == 32
  _mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1), (__m512)v);
#elif defined(__AVX512F__) && VECTOR_BYTES == 64
  _mm512_mask_storeu_pd(p, (__mmask8)((1u << n) - 1), (__m512d)v);
#elif defined(__AVX2__) && VECTOR_BYTES == 32 && REAL_BITS == 32
  _mm256_maskstore_ps(p, (__m256i)first_lanes(n), (__m256)v);
#elif defined(__AVX2__) && VECTOR_BYTES == 32
  _mm256_maskstore_pd(p, (__m256i)first_lanes(n), (__m256d)v);
#else
  store_part(p, v, n);
#endif
}

/* As sum_of and largest_of, without a way through memory where the machine can add up its lanes. */
INLINE real sum_in(vec v) {
#if defined(__AVX512F__) && VECTOR_BYTES == 64 && REAL_BITS == 32
  return _mm512_reduce_add_ps((__m512)v);
#elif defined(__AVX512F__) && VECTOR_BYTES == 64
  return _mm512_reduce_add_pd((__m512d)v);
#elif defined(__AVX2__) && VECTOR_BYTES == 32 && REAL_BITS == 32
  __m128 half = _mm_add_ps(_mm256_castps256_ps128((__m256)v), _mm256_extractf128_ps((__m256)v, 1));
  half = _mm_add_ps(half, _mm_movehl_ps(half, half));
  return _mm_cvtss_f32(_mm_add_ss(half, _mm_movehdup_ps(half)));
#elif defined(__AVX2__) && VECTOR_BYTES == 32
  __m128d half = _mm_add_pd(_mm256_castpd256_pd128((__m256d)v), _mm256_extractf128_pd((__m256d)v, 1));
  return _mm_cvtsd_f64(_mm_add_sd(half, _mm_unpackhi_pd(half, half)));
#else
  return sum_of(v);
#endif
}
INLINE real largest_in(vec v) {
#if defined(__AVX512F__) && VECTOR_BYTES == 64 && REAL_BITS == 32
  return _mm512_reduce_max_ps((__m512)v);
#elif defined(__AVX512F__) && VECTOR_BYTES == 64
  return _mm512_reduce_max_pd((__m512d)v);
#else
  return largest_of(v);
#endif
}

/* Streaming: writing past the caches what is too large for them, which spares the machine to read it first. Pointers
   must be aligned to a vector: `before_aligned` says how many numbers stand before the next such place. */
INLINE long before_aligned(const real *p, long size) {
  long n = (long)(-(uintptr_t)p % VECTOR_BYTES / sizeof(real));
  return n < size ? n : size;
}
INLINE void stream(real *p, vec v) {
#if defined(__AVX512F__) && VECTOR_BYTES == 64
  _mm512_stream_si512((void *)p, (__m512i)v);
#elif defined(__AVX2__) && VECTOR_BYTES == 32
  _mm256_stream_si256((void *)p, (__m256i)v);
#elif defined(__SSE2__) && VECTOR_BYTES == 16
  _mm_stream_si128((void *)p, (__m128i)v);
#else
  store(p, v);
#endif
}
INLINE void end_of_stream(void) {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

/* Write a row, `value(i, n)` being n of its numbers at i, LANES of them but at its ends. */
#define WRITE_ROW(out, size, streams, value) \
  do { \
    long i_ = (streams) ? before_aligned(out, size) : 0; \
    if (i_) store_first(out, value(0, i_), i_); \
    if (streams) \
      for (; i_ + LANES <= (size); i_ += LANES) stream((out) + i_, value(i_, LANES)); \
    else \
      for (; i_ + LANES <= (size); i_ += LANES) store((out) + i_, value(i_, LANES)); \
    if (i_ < (size)) store_first((out) + i_, value(i_, (size) - i_), (size) - i_); \
  } while (0)
INLINE vec load_some(const real *p, long n) { return n < LANES ? load_first(p, n, 0) : load(p); }
INLINE void store_some(real *p, vec v, long n) {
  if (n < LANES) store_first(p, v, n);
  else store(p, v);
}

/* The sum over a row of an expression of its vectors, in four strands, so that no addition waits for the one before.
   `term(i)` is the vector at number i, `last(i, n)` the one of the n numbers left there, 0 beyond them. */
#define SUM_OF_ROW(total, size, term, last) \
  do { \
    vec s0 = all(0), s1 = all(0), s2 = all(0), s3 = all(0); \
    long i_ = 0; \
    for (; i_ + 4 * LANES <= (size); i_ += 4 * LANES) { \
      s0 += term(i_); \
      s1 += term(i_ + LANES); \
      s2 += term(i_ + 2 * LANES); \
      s3 += term(i_ + 3 * LANES); \
    } \
    for (; i_ + LANES <= (size); i_ += LANES) s0 += term(i_); \
    if (i_ < (size)) s1 += last(i_, (size) - i_); \
    total = sum_in((s0 + s1) + (s2 + s3)); \
  } while (0)

#endif
