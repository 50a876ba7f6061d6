/* CUDA as far as src/backlight/kernels/cuda/encoder.cu uses it, on the processor: the threads of a block are fibers.

A fiber runs until it waits: at __syncthreads for all threads of its block, at a shuffle for those of its warp. A thread
that has returned is waited for no more. If threads wait at different barriers, the process aborts. Each fiber begins by
setcontext; after that, _setjmp and _longjmp switch, which make no system call. */

#include <cmath>
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ucontext.h>
#include <utility>
#include <vector>

#define __global__
#define __device__
#define __shared__ static
#define __align__(bytes) __attribute__((aligned(bytes)))

struct float4 { float x, y, z, w; };
struct Index { unsigned x, y, z; };
static Index threadIdx, blockIdx;

struct Barrier { unsigned alive, arrived, generation; };
struct Fiber { ucontext_t context; jmp_buf place; std::vector<char> stack; bool begun, done; };
static std::vector<Fiber> fibers;
static std::vector<Barrier> warps;
static std::vector<float> exchanged;
static Barrier whole;
static jmp_buf scheduler;
static unsigned idle;  // switches since something went on

static void open_if_all_wait(Barrier &barrier) {
    if (barrier.arrived == 0 || barrier.arrived < barrier.alive) return;
    barrier.arrived = 0;
    barrier.generation++;
    idle = 0;
}

static void wait_at(Barrier &barrier) {
    unsigned generation = barrier.generation;
    barrier.arrived++;
    open_if_all_wait(barrier);
    while (barrier.generation == generation)
        if (!_setjmp(fibers[threadIdx.x].place)) _longjmp(scheduler, 1);
}

static void __syncthreads() { wait_at(whole); }

static float __shfl_xor_sync(unsigned, float value, int mask) {
    unsigned own = threadIdx.x;
    exchanged[own] = value;
    wait_at(warps[own / 32]);
    float found = exchanged[own ^ (unsigned)mask];
    wait_at(warps[own / 32]);
    return found;
}

static void (*body)(void *);
static void *given;

static void run_fiber() {
    body(given);
    unsigned own = threadIdx.x;
    fibers[own].done = true;
    idle = 0;
    for (Barrier *barrier : {&whole, &warps[own / 32]}) {
        barrier->alive--;
        open_if_all_wait(*barrier);
    }
    _longjmp(scheduler, 1);
}

static void run_block(unsigned threads) {
    fibers.resize(threads);
    exchanged.assign(threads, 0.0f);
    warps.assign(threads / 32, Barrier{32, 0, 0});
    whole = Barrier{threads, 0, 0};
    idle = 0;
    for (Fiber &fiber : fibers) fiber.begun = fiber.done = false;
    while (whole.alive) {
        for (unsigned i = 0; i < threads; i++) {
            Fiber &fiber = fibers[i];
            if (fiber.done) continue;
            if (++idle > 4 * threads) {
                std::fprintf(stderr, "threads of a block wait at different barriers\n");
                std::abort();
            }
            threadIdx = Index{i, 0, 0};
            if (_setjmp(scheduler)) continue;
            if (fiber.begun) _longjmp(fiber.place, 1);
            fiber.begun = true;
            fiber.stack.resize(1 << 15);
            getcontext(&fiber.context);
            fiber.context.uc_stack.ss_sp = fiber.stack.data();
            fiber.context.uc_stack.ss_size = fiber.stack.size();
            makecontext(&fiber.context, run_fiber, 0);
            setcontext(&fiber.context);
        }
    }
}

/* Runs a kernel as cuLaunchKernel does: arguments are pointers to their values. */
template <class... Types, size_t... Numbers>
static void launch(void (*kernel)(Types...), unsigned columns, unsigned rows, unsigned threads, void **arguments,
                   std::index_sequence<Numbers...>) {
    struct Call { void (*kernel)(Types...); void **arguments; } call{kernel, arguments};
    body = [](void *one) {
        Call *own = (Call *)one;
        own->kernel(*(Types *)own->arguments[Numbers]...);
    };
    given = &call;
    for (unsigned y = 0; y < rows; y++)
        for (unsigned x = 0; x < columns; x++) {
            blockIdx = Index{x, y, 0};
            run_block(threads);
        }
}

template <class... Types>
static void launch(void (*kernel)(Types...), unsigned columns, unsigned rows, unsigned threads, void **arguments) {
    launch(kernel, columns, rows, threads, arguments, std::index_sequence_for<Types...>());
}

#include SOURCE

#define ROW(name) if (!std::strcmp(called, #name)) { launch(name, columns, rows, THREADS, arguments); return 0; }

extern "C" int launch_kernel(const char *called, unsigned columns, unsigned rows, void **arguments) {
    ROW(embed) ROW(add_layer_norm) ROW(layer_norm_gradient) ROW(add_activation) ROW(activation_gradient)
    ROW(attention) ROW(attention_gradient_queries) ROW(attention_gradient_keys)
    ROW(pool) ROW(pool_gradient) ROW(round_to_bfloat16)
    return 1;
}
