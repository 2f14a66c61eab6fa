// Clusters of two blocks loop over rows: half a row for each block, its exponentials in registers; what follows
// arrives in shared memory by bulk copies, in a ring of small pieces private to each warp. Part of a row leaves
// through the same slots: while the next one is taken out of them, piece by piece, its results take their place, are
// stored in bulk, and only then the slot is filled again.
#define PIECE_VECS 2  // tune: 2 4
#define RING_KB 14  // tune: 10 12 14
#define DYNAMIC 1  // tune: 0 1
#define SWAP_EIGHTHS 4  // tune: 2 4
#define LAG 1  // tune: 1 2

constexpr int THREADS = 512;  // 128 registers each: with 1024 threads the swap spills
constexpr int WARPS = THREADS / 32;
constexpr int CLUSTERS = 66;
constexpr int ROWS = X_D0;
constexpr int VECS = X_D1 / 2 / 4 / THREADS;         // float4 of a row in each thread: 16
constexpr int WARP_FLOATS = VECS * 128;              // 2048 floats, 8 KB of a row for each warp
constexpr int PIECE_FLOATS = PIECE_VECS * 128;
constexpr int PIECE_BYTES = PIECE_FLOATS * 4;
constexpr int PIECES = VECS / PIECE_VECS;            // of one row, for each warp
constexpr int BEHIND = LAG < PIECES ? LAG : PIECES - 1;  // pieces between a slot's use and its refill
// The idea in part: rows that leave wholly through the slots make the compiler spill, so the rest is stored at once.
constexpr int SWAPPED = PIECES * SWAP_EIGHTHS / 8;
constexpr int STAGES_WANTED = RING_KB * 1024 / PIECE_BYTES;
constexpr int STAGES_LOW = STAGES_WANTED < PIECES ? PIECES : STAGES_WANTED;
constexpr int STAGES = STAGES_LOW > 2 * PIECES ? 2 * PIECES : STAGES_LOW;  // a refill is for one of the next two rows
constexpr int RING_BYTES = WARPS * STAGES * PIECE_BYTES;
constexpr int PARTIAL_BYTES = 2 * WARPS * 8;         // (maximum, sum) of the warps of both blocks
constexpr int BOARD_BYTES = PARTIAL_BYTES + 16;      // and the number of a row to come
constexpr int BOARD_TX = PARTIAL_BYTES + (DYNAMIC ? 8 : 0);
constexpr int FIRST_DRAWN = 3 * CLUSTERS;           // the first three rows of a cluster are given
constexpr int LAST_DRAWN = ROWS + CLUSTERS - 1;      // every cluster draws one blank
constexpr float LOWEST = -3.402823466e+38f;

__device__ unsigned tickets;  // zero between launches: whoever draws the last one resets it

__device__ __forceinline__ uint32_t shared_at(const void* p) { return (uint32_t)__cvta_generic_to_shared(p); }
__device__ __forceinline__ void barrier_init(uint32_t bar, uint32_t arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(arrivals) : "memory");
}
__device__ __forceinline__ void barrier_expect(uint32_t bar, uint32_t bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes) : "memory");
}
__device__ __forceinline__ void barrier_wait(uint32_t bar, uint32_t parity) {
    asm volatile("{\n.reg .pred done;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n@done bra out;\nbra again;\nout:\n}"
                 ::"r"(bar), "r"(parity) : "memory");
}
__device__ __forceinline__ void barrier_wait_cluster(uint32_t bar, uint32_t parity) {
    asm volatile("{\n.reg .pred done;\nagain:\nmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%0], %1;\n@done bra out;\nbra again;\nout:\n}"
                 ::"r"(bar), "r"(parity) : "memory");
}
__device__ __forceinline__ void bulk_load(uint32_t to, const void* from, uint32_t bytes, uint32_t bar) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                 ::"r"(to), "l"(from), "r"(bytes), "r"(bar) : "memory");
}
__device__ __forceinline__ void bulk_store(void* to, uint32_t from, uint32_t bytes) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;\ncp.async.bulk.commit_group;"
                 ::"l"(to), "r"(from), "r"(bytes) : "memory");
}
template <int LEFT> __device__ __forceinline__ void bulk_stores_read() {
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(LEFT) : "memory");
}
__device__ __forceinline__ int slot_before(int stage, int back) {
    return stage >= back ? stage - back : stage - back + STAGES;
}
__device__ __forceinline__ void cluster_barrier() {
    asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}
__device__ __forceinline__ uint32_t cluster_rank() {
    uint32_t r;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(r));
    return r;
}
__device__ __forceinline__ uint32_t in_block(uint32_t mine, uint32_t rank) {
    uint32_t there;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(mine), "r"(rank));
    return there;
}
__device__ __forceinline__ void store_async(uint32_t to, uint64_t value, uint32_t bar) {
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.b64 [%0], %1, [%2];"
                 ::"r"(to), "l"(value), "r"(bar) : "memory");
}

// offset is 0, but depends on what was read from the slot: all lanes' loads are complete.
__device__ __forceinline__ void refill(const float* x, uint32_t ring_at, uint32_t full, int slot, int offset, uint32_t at) {
    barrier_expect(full + slot * 8, PIECE_BYTES);
    bulk_load(ring_at + slot * PIECE_BYTES + offset, x + at, PIECE_BYTES, full + slot * 8);
}

// d <= 0. The difference is taken first; the second constant is what log2(e) loses as a float, a bias of the sum.
__device__ __forceinline__ float exp_of(float d) {
    float r;
    const float t = fmaf(d, 1.44269502162933350f, d * 1.92596303e-8f);
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(t));
    return r;
}

// Floats as integers of the same order (and back): the maximum of a warp is one instruction then.
__device__ __forceinline__ int ordered(float f) {
    const int b = __float_as_int(f);
    return b ^ ((b >> 31) & 0x7fffffff);
}
__device__ __forceinline__ float unordered(int b) { return __int_as_float(b ^ ((b >> 31) & 0x7fffffff)); }

__device__ __forceinline__ float warp_sum(float s) {
#pragma unroll
    for (int d = 16; d; d >>= 1) s += __shfl_xor_sync(0xffffffffu, s, d);
    return s;
}

// The number of a row to come, for both blocks.
__device__ __forceinline__ void deal(uint32_t boards, uint32_t boards_full, uint32_t side, int drawn) {
    if (drawn == LAST_DRAWN) atomicExch(&tickets, 0u);
#pragma unroll
    for (uint32_t to = 0; to < 2; ++to)
        store_async(in_block(boards + side * BOARD_BYTES + PARTIAL_BYTES, to), (uint64_t)(uint32_t)drawn,
                    in_block(boards_full + side * 8, to));
}

__global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(THREADS, 1)
softmax_rows(const float* __restrict__ x, float* __restrict__ out, int nothing) {
    extern __shared__ __align__(128) unsigned char memory[];
    __shared__ __align__(16) unsigned char boards[2 * BOARD_BYTES];
    __shared__ __align__(8) uint64_t bars[2 + WARPS * STAGES];

    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const uint32_t rank = cluster_rank();
    unsigned char* ring = memory + warp * (STAGES * PIECE_BYTES);
    const uint32_t ring_at = shared_at(ring);
    const uint32_t boards_full = shared_at(bars);
    const uint32_t full = boards_full + (2 + warp * STAGES) * 8;
    const uint32_t part = rank * (X_D1 / 2) + warp * WARP_FLOATS;  // of a row, for this warp

    int row = blockIdx.x >> 1, row1 = row + CLUSTERS, row2 = row1 + CLUSTERS;

    if (lane == 0) {
#pragma unroll
        for (int i = 0; i < STAGES; ++i) barrier_init(full + i * 8, 1);
        if (warp == 0) {
            barrier_init(boards_full, 1);
            barrier_init(boards_full + 8, 1);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#pragma unroll
        for (int i = 0; i < STAGES; ++i) {
            barrier_expect(full + i * 8, PIECE_BYTES);
            bulk_load(ring_at + i * PIECE_BYTES,
                      x + (size_t)(i < PIECES ? row : row1) * X_D1 + part + (i % PIECES) * PIECE_FLOATS, PIECE_BYTES,
                      full + i * 8);
        }
        if (warp == 0) {
            barrier_expect(boards_full, BOARD_TX);
            barrier_expect(boards_full + 8, BOARD_TX);
        }
    }
    __syncwarp();
    cluster_barrier();

    const bool dealer = DYNAMIC && rank == 0 && threadIdx.x == 0;
    if (dealer) deal(shared_at(boards), boards_full, 0, FIRST_DRAWN + (int)atomicAdd(&tickets, 1u));

    int stage = 0;
    uint32_t parity = 0;
    int prev = 0, drawn = ROWS;  // the row whose exponentials are in v, and one drawn that is not told yet
    float factor = 0.f;
    float4 v[VECS];
#pragma unroll
    for (int i = 0; i < VECS; ++i) v[i] = make_float4(0.f, 0.f, 0.f, 0.f);
#pragma unroll 1
    for (uint32_t k = 0; row < ROWS; ++k) {
        int key = ordered(LOWEST);
#pragma unroll
        for (int j = 0; j < PIECES; ++j) {
            float4* piece = reinterpret_cast<float4*>(ring + stage * PIECE_BYTES) + lane;
            barrier_wait(full + stage * 8, parity);
            float top = LOWEST;
#pragma unroll
            for (int i = 0; i < PIECE_VECS; ++i) {
                const float4 a = piece[i * 32];
                float4& e = v[j * PIECE_VECS + i];
                if (j < SWAPPED && k) piece[i * 32] = make_float4(e.x * factor, e.y * factor, e.z * factor, e.w * factor);
                e = a;
                top = fmaxf(top, fmaxf(fmaxf(a.x, a.y), fmaxf(a.z, a.w)));
            }
            if (j < SWAPPED) asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
            key = max(key, __reduce_max_sync(0xffffffffu, ordered(top)));
            __syncwarp();
            if (lane == 0) {
                if (j < SWAPPED && k)
                    bulk_store(out + ((uint32_t)prev * X_D1 + part + j * PIECE_FLOATS), ring_at + stage * PIECE_BYTES,
                               PIECE_BYTES);
                if (j >= BEHIND) {
                    const int next = j - BEHIND + STAGES < 2 * PIECES ? row1 : row2;
                    if (next < ROWS) {
                        if (j < SWAPPED) bulk_stores_read<BEHIND>();
                        else bulk_stores_read<0>();
                        refill(x, ring_at, full, slot_before(stage, BEHIND), key & nothing,
                               (uint32_t)next * X_D1 + part + ((j - BEHIND + STAGES) % PIECES) * PIECE_FLOATS);
                    }
                }
            }
            __syncwarp();
            if (++stage == STAGES) {
                stage = 0;
                parity ^= 1;
            }
        }
        if (dealer && k) deal(shared_at(boards), boards_full, k & 1, drawn);

        // Exponentials relative to the warp's own maximum: one exchange for each row is enough.
        const float m = unordered(key);
        float s0 = 0.f, s1 = 0.f, s2 = 0.f, s3 = 0.f;
#pragma unroll
        for (int i = 0; i < VECS; ++i) {
            s0 += v[i].x = exp_of(v[i].x - m);
            s1 += v[i].y = exp_of(v[i].y - m);
            s2 += v[i].z = exp_of(v[i].z - m);
            s3 += v[i].w = exp_of(v[i].w - m);
        }
        if (lane == 0) {
            bulk_stores_read<0>();
#pragma unroll
            for (int j = PIECES - BEHIND; j < PIECES; ++j) {
                const int next = j + STAGES < 2 * PIECES ? row1 : row2;
                if (next < ROWS)
                    refill(x, ring_at, full, slot_before(stage, PIECES - j), key & nothing,
                           (uint32_t)next * X_D1 + part + ((j + STAGES) % PIECES) * PIECE_FLOATS);
            }
        }
        __syncwarp();
        const float sum = warp_sum((s0 + s1) + (s2 + s3));

        const uint32_t side = k & 1;
        if (lane < 2) {  // to both blocks, one by each lane
            const uint32_t there = in_block(shared_at(boards) + side * BOARD_BYTES + (rank * WARPS + warp) * 8, lane);
            store_async(there, (uint64_t)__float_as_uint(m) | ((uint64_t)__float_as_uint(sum) << 32),
                        in_block(boards_full + side * 8, lane));
        }

        // A board is written again only for step k + 2, which no warp reaches before all have published step k + 1.
        barrier_wait_cluster(boards_full + side * 8, (k >> 1) & 1);
        if (threadIdx.x == 0) barrier_expect(boards_full + side * 8, BOARD_TX);
        const unsigned char* board = boards + side * BOARD_BYTES;
        const float2 one = reinterpret_cast<const float2*>(board)[lane];  // of 32 warps in two blocks
        const int row3 = DYNAMIC ? *reinterpret_cast<const int*>(board + PARTIAL_BYTES) : row2 + CLUSTERS;
        const float all = unordered(__reduce_max_sync(0xffffffffu, ordered(one.x)));
        const float total = warp_sum(one.y * exp_of(one.x - all));
        factor = exp_of(m - all) * (1.f / total);

        // The row of step k + 4 is drawn here and told on the board of step k + 1, after its pieces are read.
        drawn = ROWS;
        if (dealer && row3 < ROWS) drawn = FIRST_DRAWN + (int)atomicAdd(&tickets, 1u);

        float4* there = reinterpret_cast<float4*>(out + ((uint32_t)row * X_D1 + part + lane * 4));
#pragma unroll
        for (int i = SWAPPED * PIECE_VECS; i < VECS; ++i)
            there[i * 32] = make_float4(v[i].x * factor, v[i].y * factor, v[i].z * factor, v[i].w * factor);
        prev = row;
        row = row1;
        row1 = row2;
        row2 = row3;
    }
    // Every cluster has had a row; its last one is still here.
    float4* to = reinterpret_cast<float4*>(out + ((uint32_t)prev * X_D1 + part + lane * 4));
#pragma unroll
    for (int i = 0; i < SWAPPED * PIECE_VECS; ++i)
        to[i * 32] = make_float4(v[i].x * factor, v[i].y * factor, v[i].z * factor, v[i].w * factor);
    if (lane == 0) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    __syncwarp();
    cluster_barrier();  // no block leaves while the other may still write to it
}

extern "C" int launch(const float* x, float* out, void* workspace, cudaStream_t stream) {
    (void)workspace;
    cudaFuncSetAttribute(softmax_rows, cudaFuncAttributeMaxDynamicSharedMemorySize, RING_BYTES);
    softmax_rows<<<2 * CLUSTERS, THREADS, RING_BYTES, stream>>>(x, out, 0);
    return (int)cudaGetLastError();
}
