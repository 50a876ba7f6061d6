/* What an encoder of BERT's shape needs on a GPU besides matrix products: forward, and the gradient for its inputs.

NOTE [One source, two compilers]
NVRTC compiles this file for a GPU. g++ compiles the same file for the tests, with tests/support/cuda_shim.h before it,
which runs the threads of a block as fibers. So it uses no header, and of CUDA only threadIdx, blockIdx, __shared__,
__syncthreads and __shfl_xor_sync. All threads of a block reach each of these, whether they have work or not.

NOTE [Ragged attention on a GPU]
Sequences lie end to end. A block of threads takes ROWS rows (queries, or keys) of one sequence and one head, and goes
through that sequence's other side, TILE rows at a time, in shared memory. Two neighbouring threads share a row: each
holds half of its numbers, every other four, and a shuffle adds the halves of a product. Probabilities are computed anew
in the backward pass from log Σ exp(scores), as the kernels on the processor do. No padding, no atomics.

DIM, the size of a head, a multiple of 8, is set when this is compiled. Rows are dense; numbers are float32. */

#ifndef DIM
#define DIM 32
#endif
#define THREADS 128 /* of each block */
#define ROWS (THREADS / 2)
#define TILE 32
#define HALF (DIM / 2)
#define UNROLLED _Pragma("unroll") for /* so that a row's numbers stay in registers */
#define KERNEL extern "C" __global__ void

enum { GELU, GELU_TANH, RELU };

__device__ static float block_sum(float value, float *shared) {
    shared[threadIdx.x] = value;
    __syncthreads();
    for (int step = THREADS / 2; step; step /= 2) {
        if ((int)threadIdx.x < step) shared[threadIdx.x] += shared[threadIdx.x + step];
        __syncthreads();
    }
    float sum = shared[0];
    __syncthreads();
    return sum;
}

/* out = word + position + segment; words are rows of a table by `ids`, or one a token where ids is null. */
KERNEL embed(const float *words, const int *ids, const float *position_table, const int *positions,
             const float *segment_table, const int *segments, float *out, int width) {
    size_t token = blockIdx.x;
    const float *word = words + (ids ? (size_t)ids[token] : token) * width;
    const float *position = position_table + (size_t)positions[token] * width;
    const float *segment = segment_table ? segment_table + (size_t)segments[token] * width : 0;
    for (int i = threadIdx.x; i < width; i += THREADS)
        out[token * width + i] = word[i] + (segment ? segment[i] : 0.0f) + position[i];
}

/* x becomes x̂, x + bias + residual brought to mean 0 and variance 1; out = x̂ · weight + shift; inverse = 1 / σ. */
KERNEL add_layer_norm(float *x, const float *bias, const float *residual, const float *weight, const float *shift,
                      float *out, float *inverse, int width, float eps) {
    __shared__ float shared[THREADS];
    size_t row = blockIdx.x;
    float *own = x + row * width, sum = 0.0f, squares = 0.0f;
    for (int i = threadIdx.x; i < width; i += THREADS) {
        own[i] += (bias ? bias[i] : 0.0f) + (residual ? residual[row * width + i] : 0.0f);
        sum += own[i];
    }
    float mean = block_sum(sum, shared) / width;
    for (int i = threadIdx.x; i < width; i += THREADS) squares += (own[i] - mean) * (own[i] - mean);
    float scale = 1.0f / sqrtf(block_sum(squares, shared) / width + eps);
    for (int i = threadIdx.x; i < width; i += THREADS) {
        own[i] = (own[i] - mean) * scale;
        out[row * width + i] = own[i] * weight[i] + shift[i];
    }
    if (threadIdx.x == 0) inverse[row] = scale;
}

/* g = grad · weight; out = (g − mean g − x̂ · mean(g · x̂)) / σ. */
KERNEL layer_norm_gradient(const float *grad, const float *normalised, const float *weight, const float *inverse,
                           float *out, int width) {
    __shared__ float shared[THREADS];
    size_t start = (size_t)blockIdx.x * width;
    float sum = 0.0f, product = 0.0f;
    for (int i = threadIdx.x; i < width; i += THREADS) {
        float g = grad[start + i] * weight[i];
        sum += g;
        product += g * normalised[start + i];
    }
    float mean = block_sum(sum, shared) / width, share = block_sum(product, shared) / width;
    for (int i = threadIdx.x; i < width; i += THREADS)
        out[start + i] = (grad[start + i] * weight[i] - mean - normalised[start + i] * share) * inverse[blockIdx.x];
}

/* x += bias; out = activation(x). */
KERNEL add_activation(float *x, const float *bias, float *out, int width, int kind) {
    size_t start = (size_t)blockIdx.x * width;
    for (int i = threadIdx.x; i < width; i += THREADS) {
        float v = x[start + i] += bias[i];
        if (kind == GELU) v = 0.5f * v * (1.0f + erff(v * 0.70710678118654752f));
        else if (kind == GELU_TANH) v = 0.5f * v * (1.0f + tanhf(0.79788456080286536f * (v + 0.044715f * v * v * v)));
        else v = v > 0.0f ? v : 0.0f;
        out[start + i] = v;
    }
}

/* grad *= activation'(x). */
KERNEL activation_gradient(float *grad, const float *x, int width, int kind) {
    size_t start = (size_t)blockIdx.x * width;
    for (int i = threadIdx.x; i < width; i += THREADS) {
        float v = x[start + i], slope;
        if (kind == GELU) {
            slope = 0.5f * (1.0f + erff(v * 0.70710678118654752f)) + v * expf(-0.5f * v * v) * 0.39894228040143268f;
        } else if (kind == GELU_TANH) {
            float t = tanhf(0.79788456080286536f * (v + 0.044715f * v * v * v));
            slope = 0.5f * (1.0f + t) + 0.5f * v * (1.0f - t * t) * 0.79788456080286536f * (1.0f + 0.134145f * v * v);
        } else {
            slope = v > 0.0f ? 1.0f : 0.0f;
        }
        grad[start + i] *= slope;
    }
}

/* A row of a head: where its numbers begin, of queries (0), keys (1) or values (2). */
__device__ static size_t place(int token, int part, int heads, int head) {
    return ((size_t)token * 3 + part) * heads * DIM + (size_t)head * DIM;
}

/* This thread's half of a row: every other four numbers. */
__device__ static void take_half(float *half, const float *row, const float *bias, int side) {
    UNROLLED (int i = 0; i < HALF; i++) {
        int at = (i / 4) * 8 + side * 4 + i % 4;
        half[i] = row[at] + (bias ? bias[at] : 0.0f);
    }
}

__device__ static void put_half(float *row, const float *half, float factor, int side) {
    UNROLLED (int i = 0; i < HALF; i++) row[(i / 4) * 8 + side * 4 + i % 4] = half[i] * factor;
}

/* The product of two rows, of which two threads have a half each. */
__device__ static float product(const float *half, const float *row, int side) {
    float sum = 0.0f;
    UNROLLED (int i = 0; i < HALF; i += 4) {
        float4 four = *(const float4 *)(row + 2 * i + side * 4);
        sum += half[i] * four.x + half[i + 1] * four.y + half[i + 2] * four.z + half[i + 3] * four.w;
    }
    return sum + __shfl_xor_sync(0xffffffffu, sum, 1);
}

__device__ static void add_scaled(float *half, const float *row, float factor, int side) {
    UNROLLED (int i = 0; i < HALF; i += 4) {
        float4 four = *(const float4 *)(row + 2 * i + side * 4);
        half[i] += factor * four.x;
        half[i + 1] += factor * four.y;
        half[i + 2] += factor * four.z;
        half[i + 3] += factor * four.w;
    }
}

/* Brings rows of one head into shared memory: of `part` of qkv and its bias, or of dense rows where part is −1. */
__device__ static void load_tile(float *tile, const float *rows, const float *bias, int first, int count, int part,
                                 int heads, int head) {
    for (int i = threadIdx.x; i < count * DIM; i += THREADS) {
        int token = first + i / DIM, at = i % DIM;
        tile[i] = part < 0 ? rows[((size_t)token * heads + head) * DIM + at]
                           : rows[place(token, part, heads, head) + at] + bias[place(0, part, heads, head) + at];
    }
}

/* blocks: for each block of threads the first token of its sequence, its length, and the block's first row in it. */
KERNEL attention(const float *qkv, const float *bias, const int *blocks, float *out, float *logs, int heads,
                 float scale) {
    __shared__ __align__(16) float keys[TILE * DIM], values[TILE * DIM];
    const int *block = blocks + 3 * blockIdx.x;
    int start = block[0], length = block[1], head = blockIdx.y, side = threadIdx.x % 2;
    int row = block[2] + threadIdx.x / 2, active = row < length, token = start + (active ? row : length - 1);
    float query[HALF], seen[HALF] = {0.0f}, top = -1e30f, total = 0.0f;
    take_half(query, qkv + place(token, 0, heads, head), bias + place(0, 0, heads, head), side);
    for (int first = 0; first < length; first += TILE) {
        int count = length - first < TILE ? length - first : TILE;
        __syncthreads();
        load_tile(keys, qkv, bias, start + first, count, 1, heads, head);
        load_tile(values, qkv, bias, start + first, count, 2, heads, head);
        __syncthreads();
        for (int j = 0; j < count; j++) {
            float score = product(query, keys + j * DIM, side) * scale;
            if (score > top) {
                float shrink = expf(top - score);
                total *= shrink;
                UNROLLED (int i = 0; i < HALF; i++) seen[i] *= shrink;
                top = score;
            }
            float weight = expf(score - top);
            total += weight;
            add_scaled(seen, values + j * DIM, weight, side);
        }
    }
    if (!active) return;
    put_half(out + ((size_t)token * heads + head) * DIM, seen, 1.0f / total, side);
    if (side == 0) logs[(size_t)token * heads + head] = top + logf(total);
}

/* With p the probabilities, d = grad · vᵀ, δ = Σ grad · out: the gradient for queries, p · (d − δ) · k · scale; and δ. */
KERNEL attention_gradient_queries(const float *grad, const float *qkv, const float *bias, const int *blocks,
                                  const float *out, const float *logs, float *found, float *deltas, int heads,
                                  float scale) {
    __shared__ __align__(16) float keys[TILE * DIM], values[TILE * DIM];
    const int *block = blocks + 3 * blockIdx.x;
    int start = block[0], length = block[1], head = blockIdx.y, side = threadIdx.x % 2;
    int row = block[2] + threadIdx.x / 2, active = row < length, token = start + (active ? row : length - 1);
    size_t dense = ((size_t)token * heads + head) * DIM;
    float query[HALF], arrived[HALF], of_query[HALF] = {0.0f}, delta = 0.0f, log = logs[(size_t)token * heads + head];
    take_half(query, qkv + place(token, 0, heads, head), bias + place(0, 0, heads, head), side);
    take_half(of_query, out + dense, 0, side);
    take_half(arrived, grad + dense, 0, side);
    UNROLLED (int i = 0; i < HALF; i++) {
        delta += arrived[i] * of_query[i];
        of_query[i] = 0.0f;
    }
    delta += __shfl_xor_sync(0xffffffffu, delta, 1);
    for (int first = 0; first < length; first += TILE) {
        int count = length - first < TILE ? length - first : TILE;
        __syncthreads();
        load_tile(keys, qkv, bias, start + first, count, 1, heads, head);
        load_tile(values, qkv, bias, start + first, count, 2, heads, head);
        __syncthreads();
        for (int j = 0; j < count; j++) {
            float weight = expf(product(query, keys + j * DIM, side) * scale - log);
            float slope = weight * (product(arrived, values + j * DIM, side) - delta);
            add_scaled(of_query, keys + j * DIM, slope, side);
        }
    }
    if (!active) return;
    put_half(found + place(token, 0, heads, head), of_query, scale, side);
    if (side == 0) deltas[(size_t)token * heads + head] = delta;
}

/* The gradients for keys, Σ p · (d − δ) · q · scale, and for values, Σ p · grad, over the queries. */
KERNEL attention_gradient_keys(const float *grad, const float *qkv, const float *bias, const int *blocks,
                               const float *logs, const float *deltas, float *found, int heads, float scale) {
    __shared__ __align__(16) float queries[TILE * DIM], grads[TILE * DIM];
    __shared__ float tile_logs[TILE], tile_deltas[TILE];
    const int *block = blocks + 3 * blockIdx.x;
    int start = block[0], length = block[1], head = blockIdx.y, side = threadIdx.x % 2;
    int row = block[2] + threadIdx.x / 2, active = row < length, token = start + (active ? row : length - 1);
    float key[HALF], value[HALF], of_key[HALF] = {0.0f}, of_value[HALF] = {0.0f};
    take_half(key, qkv + place(token, 1, heads, head), bias + place(0, 1, heads, head), side);
    take_half(value, qkv + place(token, 2, heads, head), bias + place(0, 2, heads, head), side);
    for (int first = 0; first < length; first += TILE) {
        int count = length - first < TILE ? length - first : TILE;
        __syncthreads();
        load_tile(queries, qkv, bias, start + first, count, 0, heads, head);
        load_tile(grads, grad, 0, start + first, count, -1, heads, head);
        for (int j = threadIdx.x; j < count; j += THREADS) {
            tile_logs[j] = logs[(size_t)(start + first + j) * heads + head];
            tile_deltas[j] = deltas[(size_t)(start + first + j) * heads + head];
        }
        __syncthreads();
        for (int j = 0; j < count; j++) {
            float weight = expf(product(key, queries + j * DIM, side) * scale - tile_logs[j]);
            float slope = weight * (product(value, grads + j * DIM, side) - tile_deltas[j]);
            add_scaled(of_key, queries + j * DIM, slope, side);
            add_scaled(of_value, grads + j * DIM, weight, side);
        }
    }
    if (!active) return;
    put_half(found + place(token, 1, heads, head), of_key, scale, side);
    put_half(found + place(token, 2, heads, head), of_value, 1.0f, side);
}

/* out = Σ weight · state over the tokens of each sequence, which begin at starts. */
KERNEL pool(const float *states, const int *starts, const float *weights, float *out, int width) {
    int first = starts[blockIdx.x], end = starts[blockIdx.x + 1];
    for (int i = threadIdx.x; i < width; i += THREADS) {
        float sum = 0.0f;
        for (int token = first; token < end; token++)
            if (weights[token] != 0.0f) sum += weights[token] * states[(size_t)token * width + i];
        out[(size_t)blockIdx.x * width + i] = sum;
    }
}

/* The gradient of `pool` for states. */
KERNEL pool_gradient(const float *grad, const int *starts, const float *weights, float *out, int width) {
    for (int token = starts[blockIdx.x]; token < starts[blockIdx.x + 1]; token++)
        for (int i = threadIdx.x; i < width; i += THREADS)
            out[(size_t)token * width + i] = weights[token] * grad[(size_t)blockIdx.x * width + i];
}

/* The nearest bfloat16, ties to even; of rows of `width`. */
KERNEL round_to_bfloat16(const float *x, unsigned short *out, int width) {
    size_t start = (size_t)blockIdx.x * width;
    for (int i = threadIdx.x; i < width; i += THREADS) {
        union { float number; unsigned int bits; } one;
        one.number = x[start + i];
        unsigned int up = one.bits + 0x7fffu + ((one.bits >> 16) & 1u);
        out[start + i] = (unsigned short)((one.number == one.number ? up : one.bits | 0x400000u) >> 16);
    }
}
