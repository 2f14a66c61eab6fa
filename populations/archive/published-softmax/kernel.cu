// catalogue: softmax registers shuffle cluster vector #73dd17ab
#include <math.h>
#include <string.h>

// Softmax of every row of x.
// Shared memory one block may use on the chip this is compiled for, in bytes.
constexpr int shared_limit() {
    constexpr int archs[] = {__CUDA_ARCH_LIST__};
    return archs[0] == 800 || archs[0] == 870 ? 163 * 1024
         : archs[0] == 900 || archs[0] == 1000 || archs[0] == 1030 ? 227 * 1024
                                                                  : 99 * 1024;
}
// --- elements: several neighbours move in one access, arithmetic is in float ---
__device__ __forceinline__ float to_real(float x) { return x; }
__device__ __forceinline__ float to_real(__half x) { return __half2float(x); }
__device__ __forceinline__ float to_real(__nv_bfloat16 x) { return __bfloat162float(x); }
__device__ __forceinline__ void from_real(float& to, float x) { to = x; }
__device__ __forceinline__ void from_real(__half& to, float x) { to = __float2half_rn(x); }
__device__ __forceinline__ void from_real(__nv_bfloat16& to, float x) { to = __float2bfloat16_rn(x); }

template <int BYTES> struct Bits;
template <> struct Bits<1> { using type = unsigned char; };
template <> struct Bits<2> { using type = unsigned short; };
template <> struct Bits<4> { using type = unsigned int; };
template <> struct Bits<8> { using type = uint2; };
template <> struct Bits<16> { using type = uint4; };
// N neighbours, aligned to their size, which must be a power of two of at most 16 bytes.
template <class E, int N>
union Pack {
    E at[N];
    typename Bits<N * sizeof(E)>::type bits;
    __device__ Pack() {}
};

// What is the widest pack that n elements can be cut into, of at most `most` elements?
constexpr int widest(long long n, int most) { return n % most == 0 ? most : widest(n, most / 2); }

template <int N, class E>
__device__ __forceinline__ Pack<E, N> load_pack(const E* from) {
    using B = typename Bits<N * sizeof(E)>::type;
    Pack<E, N> pack;
    pack.bits = __ldg(reinterpret_cast<const B*>(from));
    return pack;
}
template <class E, int N>
__device__ __forceinline__ void store_pack(E* to, const Pack<E, N>& pack) {
    using B = typename Bits<N * sizeof(E)>::type;
    *reinterpret_cast<B*>(to) = pack.bits;
}

// --- rows: how the 4096 rows of 65536 elements are shared out ---
using T = float;
constexpr int ROWS = 4096, COLS = 65536;
#define THREADS 256  // tune: 64 128 256 512 1024
constexpr int GROUP = THREADS;  // threads of a block that share a row
constexpr int WARPS = GROUP / 32, ROWS_PER_BLOCK = THREADS / GROUP;
constexpr int VEC = widest(COLS, 16 / sizeof(T));  // elements in one access
constexpr int UNROLL = 1;
#define CLUSTER 8  // tune: 2 4 8
#if __CUDA_ARCH_LIST__ >= 900
#define CLUSTER_OF __cluster_dims__(CLUSTER, 1, 1)
constexpr int PARTS = CLUSTER;
#else  // no clusters on this chip: one block to a row
#define CLUSTER_OF
constexpr int PARTS = 1;
#endif
constexpr int ITEMS = (COLS / VEC + GROUP * PARTS - 1) / (GROUP * PARTS);  // packs per thread
// Elements that a thread keeps in registers: a block has 65536 of them, and arithmetic needs half.
#define HOLD 64  // tune: 8 16 32 64
constexpr int MOST = 32768 / THREADS < HOLD ? 32768 / THREADS : HOLD;
constexpr int KEEP = ITEMS * VEC < MOST ? ITEMS : MOST / VEC;
#define RESIDENT 4  // tune: 1 2 4
constexpr int FITTING = 65536 / (THREADS * (KEEP * VEC + 28));
constexpr int MIN_BLOCKS = FITTING < 1 ? 1 : FITTING < RESIDENT ? FITTING : RESIDENT;
constexpr int HELD = KEEP * VEC;
// Whether all that is kept lies within the row; then nobody needs to ask.
constexpr bool FULL = (long long)PARTS * GROUP * HELD <= COLS;
// Whether the registers hold the whole row.
constexpr bool WHOLE = KEEP == ITEMS;

// Where this thread stands in its block, and its block among the `parts` that share a row.
struct Place {
    int thread, lane, warp;  // among the threads of this block that share a row
    int rank, parts;
    bool whole;  // whether nothing of the row is left to stream
    int phase;  // of the exchanges, which are double-buffered
};

__device__ __forceinline__ int first_row() {
    return blockIdx.x / PARTS * ROWS_PER_BLOCK + threadIdx.x / GROUP;
}
__device__ __forceinline__ int row_step() { return gridDim.x / PARTS * ROWS_PER_BLOCK; }

// Where pack k of what this thread keeps begins in the row; the packs of a warp are neighbours.
__device__ __forceinline__ int held_at(const Place& at, int k) {
    return (((at.rank * WARPS + at.warp) * KEEP + k) * 32 + at.lane) * VEC;
}
__device__ __forceinline__ bool inside(const Place& at, int k) { return FULL || held_at(at, k) < COLS; }

// Calls use(k, i) for every pack k that this thread keeps, which begins at element i of the row.
template <class F>
__device__ __forceinline__ void each_held(const Place& at, F use) {
#pragma unroll
    for (int k = 0; k < KEEP; ++k)
        if (inside(at, k)) use(k, held_at(at, k));
}

// What this thread keeps of a row; `fill` past the row's end.
__device__ __forceinline__ void load_held(float (&v)[HELD], const T* row, Place& at, float fill) {
    Pack<T, VEC> packs[KEEP];
    each_held(at, [&](int k, int i) { packs[k] = load_pack<VEC>(row + i); });
#pragma unroll
    for (int k = 0; k < KEEP; ++k)
#pragma unroll
        for (int j = 0; j < VEC; ++j)
            v[k * VEC + j] = inside(at, k) ? to_real(packs[k].at[j]) : fill;
}

// Goes over what is not kept: use(values, i, step) gets UNROLL packs at a time, pack u beginning at
// element i + u * step of the row; `fill` past the row's end.
template <class F>
__device__ __forceinline__ void streamed(const T* row, const Place& at, float fill, F use) {
    if (at.whole) return;
    const int step = at.parts * GROUP * VEC;
    for (int i = KEEP * step + (at.rank * GROUP + at.thread) * VEC; i < COLS; i += UNROLL * step) {
        Pack<T, VEC> packs[UNROLL];
#pragma unroll
        for (int u = 0; u < UNROLL; ++u)
            if (i + u * step < COLS) packs[u] = load_pack<VEC>(row + i + u * step);
        float v[UNROLL * VEC];
#pragma unroll
        for (int u = 0; u < UNROLL; ++u)
#pragma unroll
            for (int j = 0; j < VEC; ++j)
                v[u * VEC + j] = i + u * step < COLS ? to_real(packs[u].at[j]) : fill;
        use(v, i, step);
    }
}

// --- combine: one value out of those of all threads that share a row ---
// A value is a struct of 4-byte words; merge(a, b) joins two of them, `nothing` changes none.
template <class V>
__device__ __forceinline__ V from_lane(const V& v, int mask) {
    unsigned words[sizeof(V) / 4];
    memcpy(words, &v, sizeof v);
#pragma unroll
    for (unsigned& word : words) word = __shfl_xor_sync(~0u, word, mask);
    V other;
    memcpy(&other, words, sizeof v);
    return other;
}
template <int LANES, class V, class M>
__device__ __forceinline__ V merge_lanes(V v, M merge) {
#pragma unroll
    for (int mask = LANES / 2; mask > 0; mask /= 2) v = merge(v, from_lane(v, mask));
    return v;
}

// Over the threads of this block that share a row.
template <class V, class M>
__device__ __forceinline__ V in_block(V v, M merge, Place& at) {
    v = merge_lanes<32>(v, merge);
    if (WARPS == 1) return v;
    __shared__ V partial[2][WARPS];  // while one is read, the other may be written already
    V* const board = partial[at.phase];
    at.phase ^= 1;
    if (at.lane == 0) board[at.warp] = v;
    __syncthreads();
    return merge_lanes<WARPS>(board[at.lane % WARPS], merge);
}

__device__ __forceinline__ void cluster_barrier() {
#if __CUDA_ARCH__ >= 900
    asm volatile("barrier.cluster.arrive.release.aligned;\n\tbarrier.cluster.wait.acquire.aligned;" ::: "memory");
#endif
}
// Writes to where `mine` lies in block `rank` of the cluster.
template <class V>
__device__ __forceinline__ void store_in_block(const V* mine, int rank, const V& v) {
#if __CUDA_ARCH__ >= 900
    unsigned words[sizeof(V) / 4], to;
    memcpy(words, &v, sizeof v);
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
                 : "=r"(to) : "r"(static_cast<unsigned>(__cvta_generic_to_shared(mine))), "r"(rank));
#pragma unroll
    for (int w = 0; w < sizeof(V) / 4; ++w)
        asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(to + 4 * w), "r"(words[w]) : "memory");
#endif
}
// What the blocks of a cluster bring, for every thread.
template <class V>
__device__ __forceinline__ void gather(const V& mine, V (&got)[PARTS], Place& at) {
    __shared__ V board[2][PARTS];
    if (threadIdx.x < PARTS) store_in_block(&board[at.phase][at.rank], threadIdx.x, mine);
    cluster_barrier();
#pragma unroll
    for (int i = 0; i < PARTS; ++i) got[i] = board[at.phase][i];
    at.phase ^= 1;
}
// Over all threads that share a row: every warp writes to all blocks, one barrier does for all.
template <class V, class M>
__device__ __forceinline__ V combine(V v, const V&, M merge, Place& at) {
    if (PARTS == 1) return in_block(v, merge, at);
    constexpr int COUNT = WARPS * PARTS;
    __shared__ V partial[2][COUNT];
    V* const board = partial[at.phase];
    at.phase ^= 1;
    v = merge_lanes<32>(v, merge);
    if (at.lane < PARTS) store_in_block(&board[at.rank * WARPS + at.warp], at.lane, v);
    cluster_barrier();
    v = board[at.lane % COUNT];
    for (int i = at.lane + 32; i < COUNT; i += 32) v = merge(v, board[i]);
    return merge_lanes<(COUNT < 32 ? COUNT : 32)>(v, merge);
}

__device__ __forceinline__ Place place(bool whole) {
    Place at = {};
    at.whole = whole;
    at.thread = threadIdx.x % GROUP;
    at.lane = threadIdx.x % 32;
    at.warp = at.thread / 32;
    at.rank = blockIdx.x % PARTS;
    at.parts = PARTS;
    if (PARTS > 1) cluster_barrier();  // nobody writes into a block that has not begun
    return at;
}

#define ROWS_KERNEL __global__ void __launch_bounds__(THREADS, MIN_BLOCKS) CLUSTER_OF
#define PLACE place(WHOLE)

template <class... A>
void allow_shared(void (*kernel)(A...), size_t bytes) {
    if (bytes > 48 * 1024)
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
}

// Starts a ROWS_KERNEL over all rows with `shared` bytes of shared memory per block.
template <class... A>
int launch_rows(void (*kernel)(A...), size_t shared, cudaStream_t stream, A... args) {
    allow_shared(kernel, shared);
    int groups = (ROWS + ROWS_PER_BLOCK - 1) / ROWS_PER_BLOCK;
    const int grid = groups * PARTS;
    kernel<<<grid, THREADS, shared, stream>>>(args...);
    return cudaGetLastError();
}

// --- softmax ---
__device__ __forceinline__ float power(float x) { return expf(x); }
// Minus infinity is what a row's end is filled up with: it must not be subtracted from itself.
__device__ __forceinline__ float finite(float peak) { return peak == -INFINITY ? 0.0f : peak; }
template <int N>
__device__ __forceinline__ float highest(const float (&v)[N]) {
    float peak = v[0];
#pragma unroll
    for (int j = 1; j < N; ++j) peak = fmaxf(peak, v[j]);
    return peak;
}
// Sum of the exponentials above `peak`.
template <int N>
__device__ __forceinline__ float powers(const float (&v)[N], float peak) {
    float sum[4] = {};
#pragma unroll
    for (int j = 0; j < N; ++j) sum[j % 4] += power(v[j] - peak);
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

ROWS_KERNEL softmax_rows(const T* __restrict__ x, T* __restrict__ out) {
    Place at = PLACE;
    for (int row = first_row(); row < ROWS; row += row_step()) {
        const T* from = x + (size_t)row * COLS;
        T* to = out + (size_t)row * COLS;
        float peak = -INFINITY, sum = 0.0f;
        float v[HELD];
        load_held(v, from, at, -INFINITY);
        peak = highest(v);
        streamed(from, at, -INFINITY, [&](auto& w, int, int) { peak = fmaxf(peak, highest(w)); });
        peak = combine(peak, -INFINITY, [](float a, float b) { return fmaxf(a, b); }, at);
        sum = powers(v, peak);
        streamed(from, at, -INFINITY, [&](auto& w, int, int) { sum += powers(w, peak); });
        sum = combine(sum, 0.0f, [](float a, float b) { return a + b; }, at);
        const float scale = 1.0f / sum;
        auto give = [&](T& y, float value) { from_real(y, power(value - peak) * scale); };
        each_held(at, [&](int k, int i) {
            Pack<T, VEC> y;
#pragma unroll
            for (int j = 0; j < VEC; ++j)
                give(y.at[j], v[k * VEC + j]);
            store_pack(to + i, y);
        });
        streamed(from, at, 0.0f, [&](auto& w, int i, int step) {
#pragma unroll
            for (int u = 0; u < UNROLL; ++u) {
                Pack<T, VEC> y;
#pragma unroll
                for (int j = 0; j < VEC; ++j) give(y.at[j], w[u * VEC + j]);
                if (i + u * step < COLS) store_pack(to + i + u * step, y);
            }
        });
    }
}

extern "C" int launch(const float* x, float* out, void* workspace, cudaStream_t stream) {
    const size_t shared = 0;
    return launch_rows(softmax_rows, shared, stream, x, out);
}
