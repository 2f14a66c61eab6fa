// catalogue: layer_norm registers shuffle team weights #ba6ecc17
#include <math.h>
#include <string.h>

// Layer norm of every row of x.
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

// --- rows: how the 16 rows of 4194304 elements are shared out ---
using T = float;
constexpr int ROWS = 16, COLS = 4194304;
#define THREADS 1024  // tune: 64 128 256 512 1024
constexpr int GROUP = THREADS;  // threads of a block that share a row
constexpr int WARPS = GROUP / 32, ROWS_PER_BLOCK = THREADS / GROUP;
constexpr int VEC = 1;
constexpr int UNROLL = 1;
// Blocks that share a row; fewer where the chip cannot hold so many at once.
#define TEAM 128  // tune: 2 4 8 16 32 64 128
constexpr int PARTS = TEAM;
constexpr int ITEMS = (COLS / VEC + GROUP * PARTS - 1) / (GROUP * PARTS);  // packs per thread
// Elements that a thread keeps in registers: a block has 65536 of them, and arithmetic needs half.
#define HOLD 64  // tune: 8 16 32 64
constexpr int MOST = 32768 / THREADS < HOLD ? 32768 / THREADS : HOLD;
constexpr int KEEP = ITEMS * VEC < MOST ? ITEMS : MOST / VEC;
#define RESIDENT 1  // tune: 1 2 4
constexpr int FITTING = 65536 / (THREADS * (KEEP * VEC + 28));
constexpr int MIN_BLOCKS = FITTING < 1 ? 1 : FITTING < RESIDENT ? FITTING : RESIDENT;
constexpr int HELD = KEEP * VEC;
// Whether all that is kept lies within the row; then nobody needs to ask.
constexpr bool FULL = (long long)PARTS * GROUP * HELD <= COLS;
// Whether the registers hold the whole row, provided that the whole team is there.
constexpr bool WHOLE = KEEP == ITEMS;

// Where this thread stands in its block, and its block among the `parts` that share a row.
struct Place {
    int thread, lane, warp;  // among the threads of this block that share a row
    int rank, parts;
    bool whole;  // whether nothing of the row is left to stream
    int phase;  // of the exchanges, which are double-buffered
    unsigned epoch;  // of the exchanges across the grid
};

__device__ __forceinline__ int first_row() { return blockIdx.y; }
__device__ __forceinline__ int row_step() { return gridDim.y; }

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

// The blocks of a team exchange values over this board in global memory. A word carries its epoch,
// so that no order among stores matters; all blocks are resident at once (cooperative launch).
constexpr int MOST_BLOCKS = 2048, MOST_WORDS = 4;
__device__ unsigned long long team_board[2][MOST_BLOCKS][MOST_WORDS];
__device__ unsigned epochs[MOST_BLOCKS];

__device__ __forceinline__ unsigned long long look(const unsigned long long* from) {
    unsigned long long word;
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(word) : "l"(from) : "memory");
    return word;
}
// What the blocks of a team bring, for warp 0 of each: lane l gets those of blocks l, l + 32, ...
constexpr int EACH = (TEAM + 31) / 32;
template <class V>
__device__ __forceinline__ void gather(const V& mine, V (&got)[EACH], const V& nothing, Place& at) {
    constexpr int WORDS = sizeof(V) / 4;
    unsigned long long(*const board)[MOST_WORDS] = team_board[++at.epoch & 1] + blockIdx.y * gridDim.x;
    if (threadIdx.x >= 32) return;
    unsigned words[EACH][WORDS];
    if (at.lane == 0) {
        memcpy(words[0], &mine, sizeof mine);
#pragma unroll
        for (int w = 0; w < WORDS; ++w)
            asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(&board[at.rank][w]),
                         "l"((unsigned long long)at.epoch << 32 | words[0][w]) : "memory");
    }
    bool missing;
    do {
        missing = false;
#pragma unroll
        for (int n = 0; n < EACH; ++n)
#pragma unroll
            for (int w = 0; w < WORDS; ++w) {
                const int block = at.lane + 32 * n < at.parts ? at.lane + 32 * n : at.rank;
                const unsigned long long word = look(&board[block][w]);
                missing |= word >> 32 != at.epoch;
                words[n][w] = (unsigned)word;
            }
    } while (missing);
#pragma unroll
    for (int n = 0; n < EACH; ++n) {
        memcpy(&got[n], words[n], sizeof got[n]);
        if (at.lane + 32 * n >= at.parts) got[n] = nothing;
    }
}
// From warp 0 to all threads of the block.
template <class V>
__device__ __forceinline__ V tell(const V& v, Place& at) {
    __shared__ V told[2];
    V* const here = &told[at.phase];
    at.phase ^= 1;
    if (threadIdx.x == 0) *here = v;
    __syncthreads();
    return *here;
}
template <class V, class M>
__device__ __forceinline__ V combine(V v, const V& nothing, M merge, Place& at) {
    V got[EACH];
    gather(in_block(v, merge, at), got, nothing, at);
    if (threadIdx.x < 32) {
        v = got[0];
#pragma unroll
        for (int n = 1; n < EACH; ++n) v = merge(v, got[n]);
        v = merge_lanes<32>(v, merge);
    }
    return tell(v, at);
}

__device__ __forceinline__ Place place(bool whole) {
    Place at = {};
    at.whole = whole;
    at.thread = threadIdx.x % GROUP;
    at.lane = threadIdx.x % 32;
    at.warp = at.thread / 32;
    at.rank = blockIdx.x;
    at.parts = gridDim.x;
    at.epoch = *reinterpret_cast<volatile unsigned*>(&epochs[blockIdx.y]);
    return at;
}

// Leaves the board's epoch for the next launch. Every block of the team has read the old one by now.
__device__ __forceinline__ void leave(const Place& at) {
    if (at.rank == 0 && threadIdx.x == 0) epochs[blockIdx.y] = at.epoch;
}

// A kernel whose `Place at = PLACE` knows whether the whole team is there.
#define ROWS_KERNEL template <bool ALL> __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
#define PLACE place(ALL)

template <class... A>
void allow_shared(void (*kernel)(A...), size_t bytes) {
    if (bytes > 48 * 1024)
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
}
// How many blocks the chip holds at once.
template <class... A>
int room(void (*kernel)(A...), size_t shared) {
    int device = 0, chips = 1, each = 1;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&chips, cudaDevAttrMultiProcessorCount, device);
    cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, kernel, THREADS, shared);
    return chips * each > 0 ? chips * each : 1;
}

// Starts a ROWS_KERNEL over all rows with `shared` bytes of shared memory per block.
template <class... A>
int launch_rows(void (*all)(A...), void (*fewer)(A...), size_t shared, cudaStream_t stream, A... args) {
    allow_shared(all, shared);
    allow_shared(fewer, shared);
    int blocks = room(all, shared);
    const bool whole = WHOLE && blocks >= TEAM;
    if (!whole) blocks = room(fewer, shared);
    blocks = blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS;
    const int parts = TEAM < blocks ? TEAM : blocks;
    const int teams = blocks / parts < ROWS ? blocks / parts : ROWS;
    void* pointers[] = {(void*)&args...};
    return cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(whole ? all : fewer),
                                       dim3(parts, teams), dim3(THREADS), pointers, shared, stream);
}
// A sum and what rounding has lost of it, so that long sums stay good to the last bit.
struct Sum {
    float sum, rest;
};
__device__ __forceinline__ Sum plus(const Sum& a, const Sum& b) {
    const float sum = a.sum + b.sum, back = sum - a.sum;
    return {sum, ((a.sum - (sum - back)) + (b.sum - back)) + (a.rest + b.rest)};
}
// A few values less `base`, and their squares, in four independent chains.
template <int N>
__device__ __forceinline__ float few(const float (&v)[N], float base = 0.0f) {
    float part[4] = {};
#pragma unroll
    for (int j = 0; j < N; ++j) part[j % 4] += v[j] - base;
    return (part[0] + part[2]) + (part[1] + part[3]);
}
template <int N>
__device__ __forceinline__ float few_squares(const float (&v)[N], float base = 0.0f) {
    float part[4] = {};
#pragma unroll
    for (int j = 0; j < N; ++j) part[j % 4] += (v[j] - base) * (v[j] - base);
    return (part[0] + part[2]) + (part[1] + part[3]);
}
// Moments of values less a pivot near them. The sums are compensated and the squares are taken around
// the values' own mean, so that neither a large mean nor an outlier costs digits. Needs sum.cuda.j2.
struct Moments {
    float count;
    Sum sum, square;
};
__device__ __forceinline__ Moments joined(const Moments& a, const Moments& b) {
    if (a.count == 0.0f) return b;
    if (b.count == 0.0f) return a;
    const float gap = __fdividef(b.sum.sum, b.count) - __fdividef(a.sum.sum, a.count);
    const float share = __fdividef(a.count, a.count + b.count) * b.count;
    return {a.count + b.count, plus(a.sum, b.sum), plus(plus(a.square, {gap * gap * share, 0.0f}), b.square)};
}
// The median of three elements: one outlier among them does not matter.
template <class E>
__device__ __forceinline__ float pivot_of(const E* first, size_t step) {
    const float a = to_real(__ldg(first)), b = to_real(__ldg(first + step)), c = to_real(__ldg(first + 2 * step));
    return fmaxf(fminf(a, b), fminf(fmaxf(a, b), c));
}
// Adds the first `count` of N values.
template <int N>
__device__ __forceinline__ void add(Moments& all, const float (&v)[N], int count, float pivot) {
    if (count == 0) return;
    float part[4] = {}, squares[4] = {};
#pragma unroll
    for (int j = 0; j < N; ++j) part[j % 4] += j < count ? v[j] - pivot : 0.0f;
    const float sum = (part[0] + part[2]) + (part[1] + part[3]);
    const float mean = N == 1 ? sum : __fdividef(sum, (float)count);
#pragma unroll
    for (int j = 0; j < N; ++j) {
        const float d = j < count ? (v[j] - pivot) - mean : 0.0f;
        squares[j % 4] += d * d;
    }
    all = joined(all, {(float)count, {sum, 0.0f}, {(squares[0] + squares[2]) + (squares[1] + squares[3]), 0.0f}});
}

// --- normalisation ---
constexpr float EPS = 1e-05f;
using Value = Moments;
__device__ __forceinline__ Value merged(const Value& a, const Value& b) { return joined(a, b); }
struct Scaling {
    float mean, rest, scale;  // y = ((x - mean) - rest) * scale
};
__device__ __forceinline__ Scaling scaling(const Moments& all, float pivot) {
    const float above = (all.sum.sum + all.sum.rest) / COLS, mean = pivot + above, back = mean - pivot;
    const float variance = (all.square.sum + all.square.rest) / COLS;
    return {mean, (pivot - (mean - back)) + (above - back), 1.0f / sqrtf(variance + EPS)};
}

// A block's moments, seen from the pivot: plain sums will do for what registers hold.
struct Sums {
    float count, sum, square;
};
__device__ __forceinline__ Scaling scaling(const Sums& all, float) {
    return {all.sum / COLS, 0.0f, 1.0f / sqrtf(all.square / COLS + EPS)};
}
__device__ __forceinline__ float total_of(float v) {
    return merge_lanes<32>(v, [](float a, float b) { return a + b; });
}
// First the mean over all blocks, then the squares around it, by plain sums in a fixed order.
__device__ __forceinline__ Sums all_blocks(const Sums& mine, Place& at) {
    constexpr int COUNT = EACH;
    Sums got[COUNT], all = mine;
    gather(mine, got, Sums{0.0f, 0.0f, 0.0f}, at);
    if (threadIdx.x < 32) {
        float sum = 0.0f, square = 0.0f;
#pragma unroll
        for (int n = 0; n < COUNT; ++n) sum += got[n].sum;
        sum = total_of(sum);
        const float mean = sum / COLS;
#pragma unroll
        for (int n = 0; n < COUNT; ++n) {
            const float gap = got[n].count > 0.0f ? __fdividef(got[n].sum, got[n].count) - mean : 0.0f;
            square += got[n].square + got[n].count * gap * gap;
        }
        all = {(float)COLS, sum, total_of(square)};
    }
    return tell(all, at);
}

// The parameters' packs that fit into shared memory beside the rest stay there.
constexpr int TAKEN = 0, PACK_BYTES = VEC * sizeof(T), EXCHANGE = 64 * WARPS + 1024;
extern __shared__ uint4 dynamic_shared[];
constexpr int FREE = (shared_limit() / MIN_BLOCKS - EXCHANGE) / (THREADS * PACK_BYTES) - TAKEN;
constexpr int STAY = FREE < 2 * KEEP ? FREE : 2 * KEEP;
__device__ __forceinline__ Pack<T, VEC>* stay(int n) {
    return reinterpret_cast<Pack<T, VEC>*>(dynamic_shared) + (TAKEN + n) * THREADS + threadIdx.x;
}

// Writes the pack that begins at column i; in registers it is pack k of this thread, or k = -1.
template <int N>
__device__ __forceinline__ void write(T* to, const float (&v)[N], int from, int i, int k, const Scaling& s, const T* weight, const T* bias) {
    const Pack<T, VEC> weights = k >= 0 && 0 * KEEP + k < STAY ? *stay(0 * KEEP + k)
                                                          : load_pack<VEC>(weight + i);
    const Pack<T, VEC> biass = k >= 0 && 1 * KEEP + k < STAY ? *stay(1 * KEEP + k)
                                                          : load_pack<VEC>(bias + i);
    Pack<T, VEC> y;
#pragma unroll
    for (int j = 0; j < VEC; ++j) {
        const float value = ((v[from + j] - s.mean) - s.rest) * s.scale;
        from_real(y.at[j], value * to_real(weights.at[j]) + to_real(biass.at[j]));
    }
    store_pack(to + i, y);
}


ROWS_KERNEL normalise_rows(const T* __restrict__ x, const T* __restrict__ weight, const T* __restrict__ bias, T* __restrict__ out) {
    Place at = PLACE;
#pragma unroll
    for (int n = 0; n < STAY; ++n) {
        const int k = n % KEEP;
        const T* parameter = n < KEEP ? weight : bias;
        if (inside(at, k)) *stay(n) = load_pack<VEC>(parameter + held_at(at, k));
    }
    for (int row = first_row(); row < ROWS; row += row_step()) {
        const T* from = x + (size_t)row * COLS;
        T* to = out + (size_t)row * COLS;
        const float pivot = pivot_of(from, (COLS - 1) / 2);
        float v[HELD];
        load_held(v, from, at, pivot);
#pragma unroll
        for (int j = 0; j < HELD; ++j) v[j] -= pivot;  // from here on all is seen from the pivot
        // Within a block first the mean, then the squares around it; between blocks all at once.
        struct Total {
            float count, sum;
        } total = {0.0f, few(v)};

#pragma unroll
        for (int k = 0; k < KEEP; ++k) total.count += inside(at, k) ? VEC : 0;
        streamed(from, at, pivot, [&](auto& w, int i, int step) {
            total.sum += few(w, pivot);
#pragma unroll
            for (int u = 0; u < UNROLL; ++u) total.count += i + u * step < COLS ? VEC : 0;
        });
        total = in_block(total, [](const Total& a, const Total& b) { return Total{a.count + b.count, a.sum + b.sum}; }, at);
        const float mean = total.count > 0.0f ? total.sum / total.count : 0.0f;
        float squares[4] = {};
#pragma unroll
        for (int j = 0; j < HELD; ++j) {
            const float d = inside(at, j / VEC) ? v[j] - mean : 0.0f;
            squares[j % 4] += d * d;
        }
        streamed(from, at, pivot, [&](auto& w, int i, int step) {
#pragma unroll
            for (int n = 0; n < UNROLL * VEC; ++n) {
                const float d = i + n / VEC * step < COLS ? (w[n] - pivot) - mean : 0.0f;
                squares[n % 4] += d * d;
            }
        });
        const float square = in_block((squares[0] + squares[2]) + (squares[1] + squares[3]), [](float a, float b) { return a + b; }, at);
        const Sums all = all_blocks(Sums{total.count, total.sum, square}, at);

        const Scaling s = scaling(all, 0.0f);
        asm volatile("" : "+l"(weight));  // read again for every row: no registers to keep it in
        asm volatile("" : "+l"(bias));  // read again for every row: no registers to keep it in
        each_held(at, [&](int k, int i) { write(to, v, k * VEC, i, k, s, weight, bias); });
        streamed(from, at, 0.0f, [&](auto& w, int i, int step) {
#pragma unroll
            for (float& value : w) value -= pivot;
#pragma unroll
            for (int u = 0; u < UNROLL; ++u)
                if (i + u * step < COLS) write(to, w, u * VEC, i + u * step, -1, s, weight, bias);
        });
    }
    leave(at);
}

extern "C" int launch(const float* x, const float* ln_weight, const float* ln_bias, float* out, void* workspace, cudaStream_t stream) {
    const size_t shared = (size_t)(TAKEN + STAY) * THREADS * PACK_BYTES;
    return launch_rows(normalise_rows<true>, normalise_rows<false>, shared, stream,
                       x, ln_weight, ln_bias, out);
}
