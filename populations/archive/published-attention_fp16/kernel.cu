// catalogue: attention kv_tiles vector_loads tensor_cores async_copy exp2 warpgroups #90c37da2
constexpr int HEADS = 256, QUERIES = 2048, KEYS = 2048, HEAD = 64, HEAD_V = 64;
// Scores in units of the exponential's base two.
constexpr float SCALE = 0.125f * 1.44269504088896341f;

__device__ __forceinline__ float to_float(__half x) { return __half2float(x); }
__device__ __forceinline__ void store(__half* to, float x) { *to = __float2half_rn(x); }

__device__ __forceinline__ float power(float x) {
    float r;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
    return r;
}

#if __CUDA_ARCH_LIST__ == 900
// Starts a copy of 16 bytes from global to shared memory; 16 zero bytes where not `inside`.
__device__ __forceinline__ void copy16_async(void* to, const void* from, bool inside) {
    const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(to));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from),
                 "r"(inside ? 16 : 0)
                 : "memory");
}

__device__ __forceinline__ void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Waits until at most LEFT of this thread's groups of copies are under way.
template <int LEFT>
__device__ __forceinline__ void wait_copies() {
    asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory");
}

// A tile in shared memory as the tensor cores see it: rows of 128 bytes whose 16-byte pieces are
// exchanged by the row's last three bits; `next` is the distance between neighbouring atoms.
__device__ __forceinline__ uint64_t describe(const void* tile, int next) {
    const uint64_t address = __cvta_generic_to_shared(tile);
    return (address & 0x3FFFF) >> 4 | (uint64_t)(next >> 4) << 16 | (uint64_t)(1024 >> 4) << 32 | (uint64_t)1 << 62;
}

// Where column `col` (a multiple of 8) of row `row` lies in such a tile of halves.
__device__ __forceinline__ int swizzled(int row, int col) { return row * 64 + (col ^ row % 8 * 8); }

__device__ __forceinline__ void begin_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void commit_products() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

// Waits until at most LEFT groups of products are under way.
template <int LEFT>
__device__ __forceinline__ void wait_products() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(LEFT) : "memory");
}

// Lets the tensor cores see what ordinary stores and copies wrote to shared memory.
__device__ __forceinline__ void publish() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// Keeps the compiler from using sums before they are complete.
template <int COUNT>
__device__ __forceinline__ void settle(float (&x)[COUNT][4]) {
#pragma unroll
    for (int i = 0; i < COUNT; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) asm volatile("" : "+f"(x[i][j])::"memory");
}

// Warpgroups of 64 queries each, and keys at a time.
#define GROUPS 2  // tune: 1 2 3
#define STEP 64  // tune: 64 128
constexpr int THREADS = GROUPS * 128, TILE_QUERIES = GROUPS * 64, PIECES = STEP / 8, PIECES_V = HEAD_V / 8;
constexpr int QUERY_TILES = (QUERIES + TILE_QUERIES - 1) / TILE_QUERIES;
constexpr int K_CELLS = STEP * HEAD, V_CELLS = STEP * HEAD_V;
constexpr int SHARED_BYTES = (TILE_QUERIES * HEAD + 2 * (K_CELLS + V_CELLS)) * 2 + 1024;

#if STEP == 64
// c[64x64] = or += a[64x16] b[16x64]; keeps what c held only if `add`.
__device__ __forceinline__ void multiply_keys(float (&c)[8][4], uint64_t a, uint64_t b, int add) {
    asm volatile(
        "{ .reg .pred p; setp.ne.b32 p, %34, 0; "
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 { "
        "%0, %1, %2, %3, "
        "%4, %5, %6, %7, "
        "%8, %9, %10, %11, "
        "%12, %13, %14, %15, "
        "%16, %17, %18, %19, "
        "%20, %21, %22, %23, "
        "%24, %25, %26, %27, "
        "%28, %29, %30, %31 },  "
        "%32, %33, p, 1, 1, 0, 0; }"
        : "+f"(c[0][0]), "+f"(c[0][1]), "+f"(c[0][2]), "+f"(c[0][3]), "+f"(c[1][0]), "+f"(c[1][1]), "+f"(c[1][2]), "+f"(c[1][3]), "+f"(c[2][0]), "+f"(c[2][1]), "+f"(c[2][2]), "+f"(c[2][3]), "+f"(c[3][0]), "+f"(c[3][1]), "+f"(c[3][2]), "+f"(c[3][3]), "+f"(c[4][0]), "+f"(c[4][1]), "+f"(c[4][2]), "+f"(c[4][3]), "+f"(c[5][0]), "+f"(c[5][1]), "+f"(c[5][2]), "+f"(c[5][3]), "+f"(c[6][0]), "+f"(c[6][1]), "+f"(c[6][2]), "+f"(c[6][3]), "+f"(c[7][0]), "+f"(c[7][1]), "+f"(c[7][2]), "+f"(c[7][3])
        : "l"(a), "l"(b), "r"(add));
}

#else
// c[64x128] = or += a[64x16] b[16x128]; keeps what c held only if `add`.
__device__ __forceinline__ void multiply_keys(float (&c)[16][4], uint64_t a, uint64_t b, int add) {
    asm volatile(
        "{ .reg .pred p; setp.ne.b32 p, %66, 0; "
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 { "
        "%0, %1, %2, %3, "
        "%4, %5, %6, %7, "
        "%8, %9, %10, %11, "
        "%12, %13, %14, %15, "
        "%16, %17, %18, %19, "
        "%20, %21, %22, %23, "
        "%24, %25, %26, %27, "
        "%28, %29, %30, %31, "
        "%32, %33, %34, %35, "
        "%36, %37, %38, %39, "
        "%40, %41, %42, %43, "
        "%44, %45, %46, %47, "
        "%48, %49, %50, %51, "
        "%52, %53, %54, %55, "
        "%56, %57, %58, %59, "
        "%60, %61, %62, %63 },  "
        "%64, %65, p, 1, 1, 0, 0; }"
        : "+f"(c[0][0]), "+f"(c[0][1]), "+f"(c[0][2]), "+f"(c[0][3]), "+f"(c[1][0]), "+f"(c[1][1]), "+f"(c[1][2]), "+f"(c[1][3]), "+f"(c[2][0]), "+f"(c[2][1]), "+f"(c[2][2]), "+f"(c[2][3]), "+f"(c[3][0]), "+f"(c[3][1]), "+f"(c[3][2]), "+f"(c[3][3]), "+f"(c[4][0]), "+f"(c[4][1]), "+f"(c[4][2]), "+f"(c[4][3]), "+f"(c[5][0]), "+f"(c[5][1]), "+f"(c[5][2]), "+f"(c[5][3]), "+f"(c[6][0]), "+f"(c[6][1]), "+f"(c[6][2]), "+f"(c[6][3]), "+f"(c[7][0]), "+f"(c[7][1]), "+f"(c[7][2]), "+f"(c[7][3]), "+f"(c[8][0]), "+f"(c[8][1]), "+f"(c[8][2]), "+f"(c[8][3]), "+f"(c[9][0]), "+f"(c[9][1]), "+f"(c[9][2]), "+f"(c[9][3]), "+f"(c[10][0]), "+f"(c[10][1]), "+f"(c[10][2]), "+f"(c[10][3]), "+f"(c[11][0]), "+f"(c[11][1]), "+f"(c[11][2]), "+f"(c[11][3]), "+f"(c[12][0]), "+f"(c[12][1]), "+f"(c[12][2]), "+f"(c[12][3]), "+f"(c[13][0]), "+f"(c[13][1]), "+f"(c[13][2]), "+f"(c[13][3]), "+f"(c[14][0]), "+f"(c[14][1]), "+f"(c[14][2]), "+f"(c[14][3]), "+f"(c[15][0]), "+f"(c[15][1]), "+f"(c[15][2]), "+f"(c[15][3])
        : "l"(a), "l"(b), "r"(add));
}

#endif
// c[64x64] = or += a[64x16] b[16x64]; keeps what c held only if `add`.
__device__ __forceinline__ void multiply_values(float (&c)[8][4], const uint32_t (&a)[4], uint64_t b, int add) {
    asm volatile(
        "{ .reg .pred p; setp.ne.b32 p, %37, 0; "
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 { "
        "%0, %1, %2, %3, "
        "%4, %5, %6, %7, "
        "%8, %9, %10, %11, "
        "%12, %13, %14, %15, "
        "%16, %17, %18, %19, "
        "%20, %21, %22, %23, "
        "%24, %25, %26, %27, "
        "%28, %29, %30, %31 },  "
        "{ %32, %33, %34, %35 }, %36, p, 1, 1, 1; }"
        : "+f"(c[0][0]), "+f"(c[0][1]), "+f"(c[0][2]), "+f"(c[0][3]), "+f"(c[1][0]), "+f"(c[1][1]), "+f"(c[1][2]), "+f"(c[1][3]), "+f"(c[2][0]), "+f"(c[2][1]), "+f"(c[2][2]), "+f"(c[2][3]), "+f"(c[3][0]), "+f"(c[3][1]), "+f"(c[3][2]), "+f"(c[3][3]), "+f"(c[4][0]), "+f"(c[4][1]), "+f"(c[4][2]), "+f"(c[4][3]), "+f"(c[5][0]), "+f"(c[5][1]), "+f"(c[5][2]), "+f"(c[5][3]), "+f"(c[6][0]), "+f"(c[6][1]), "+f"(c[6][2]), "+f"(c[6][3]), "+f"(c[7][0]), "+f"(c[7][1]), "+f"(c[7][2]), "+f"(c[7][3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(add));
}

// Copies rows of a (ALL x WIDTH) matrix to swizzled tiles of 64 columns, zeros outside.
template <int COUNT, int ALL, int WIDTH>
__device__ __forceinline__ void load_rows(__half* to, const __half* __restrict__ from, int first) {
    constexpr int LANES = WIDTH / 8;
#pragma unroll
    for (int start = 0; start < COUNT * LANES; start += THREADS) {
        const int i = start + threadIdx.x, row = i / LANES, col = i % LANES * 8;
        if (COUNT * LANES % THREADS && i >= COUNT * LANES) break;
        const bool inside = first + row < ALL;
        copy16_async(to + col / 64 * COUNT * 64 + swizzled(row, col % 64), from + (inside ? (size_t)(first + row) * WIDTH + col : 0), inside);
    }
}

// Begins scores = queries x keys.
__device__ __forceinline__ void score(float (&s)[PIECES][4], const __half* q, const __half* k) {
#pragma unroll
    for (int d = 0; d < HEAD; d += 16)
        multiply_keys(s, describe(q + d / 64 * TILE_QUERIES * 64 + d % 64, 16), describe(k + d / 64 * STEP * 64 + d % 64, 16), d > 0);
    commit_products();
}

// Begins out += probabilities x values.
__device__ __forceinline__ void gather(float (&out)[PIECES_V][4], const uint32_t (&p)[PIECES / 2][4], const __half* v) {
#pragma unroll
    for (int key = 0; key < STEP; key += 16) multiply_values(out, p[key / 16], describe(v + key * 64, STEP * 128), 1);
    commit_products();
}

// Takes away the scores of keys that are not there.
__device__ __forceinline__ void mask(float (&s)[PIECES][4], int first_key, int query) {
#pragma unroll
    for (int j = 0; j < PIECES; ++j)
#pragma unroll
        for (int e = 0; e < 4; ++e) {
            const int key = first_key + j * 8 + threadIdx.x % 4 * 2 + e % 2;
            if (key >= KEYS) s[j][e] = -INFINITY;
        }
}

// Scores become probabilities relative to the running maximum; `keep` is what older sums are
// worth under the new one.
__device__ __forceinline__ void soften(float (&s)[PIECES][4], float (&most)[2], float (&total)[2], float (&keep)[2]) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        float top = s[0][h * 2];
#pragma unroll
        for (int j = 0; j < PIECES; ++j) top = fmaxf(top, fmaxf(s[j][h * 2], s[j][h * 2 + 1]));
        top = fmaxf(top, __shfl_xor_sync(~0u, top, 1));
        top = fmaxf(fmaxf(top, __shfl_xor_sync(~0u, top, 2)), most[h]);
        keep[h] = power((most[h] - top) * SCALE);
        most[h] = top;
        float sum = 0.0f, offset = -top * SCALE;
        // One rounding fewer per score, as long as the maximum's own rounding is harmless.
        if (__any_sync(~0u, fabsf(offset) > 4096.0f)) {
            offset = 0.0f;
#pragma unroll
            for (int j = 0; j < PIECES; ++j) s[j][h * 2] -= top, s[j][h * 2 + 1] -= top;
        }
#pragma unroll
        for (int j = 0; j < PIECES; ++j) {
            const float x = fmaf(s[j][h * 2], SCALE, offset), y = fmaf(s[j][h * 2 + 1], SCALE, offset);
            s[j][h * 2] = power(x);
            s[j][h * 2 + 1] = power(y);
            sum += s[j][h * 2] + s[j][h * 2 + 1];
        }
        total[h] = total[h] * keep[h] + sum;
    }
}

// Probabilities as a left operand.
__device__ __forceinline__ void pack(uint32_t (&p)[PIECES / 2][4], const float (&s)[PIECES][4]) {
#pragma unroll
    for (int j = 0; j < PIECES; ++j)
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            const __half2 pair = __floats2half2_rn(s[j][h * 2], s[j][h * 2 + 1]);
            p[j / 2][j % 2 * 2 + h] = *reinterpret_cast<const uint32_t*>(&pair);
        }
}

__global__ void __launch_bounds__(THREADS, 1)
attention(const __half* __restrict__ q, const __half* __restrict__ k, const __half* __restrict__ v, __half* __restrict__ out) {
    extern __shared__ unsigned char memory[];
    __half* queries = reinterpret_cast<__half*>(memory + (1024 - __cvta_generic_to_shared(memory) % 1024) % 1024);
    __half* k_tiles = queries + TILE_QUERIES * HEAD;
    __half* v_tiles = k_tiles + 2 * K_CELLS;
    const int group = threadIdx.x / 128, lane = threadIdx.x % 32;
    const size_t head = blockIdx.x / QUERY_TILES;
    const int tile = blockIdx.x % QUERY_TILES;
    constexpr int steps = (KEYS + STEP - 1) / STEP;
    q += head * QUERIES * HEAD;
    k += head * KEYS * HEAD;
    v += head * KEYS * HEAD_V;
    out += head * QUERIES * HEAD_V;
    const int query = tile * TILE_QUERIES + threadIdx.x / 32 * 16 + lane / 4;
    const __half* mine = queries + group * 64 * 64;

    load_rows<TILE_QUERIES, QUERIES, HEAD>(queries, q, tile * TILE_QUERIES);
    load_rows<STEP, KEYS, HEAD>(k_tiles, k, 0);
    commit_copies();
    if (steps > 1) load_rows<STEP, KEYS, HEAD>(k_tiles + K_CELLS, k, STEP);
    load_rows<STEP, KEYS, HEAD_V>(v_tiles, v, 0);
    commit_copies();

    float s[PIECES][4], sums[PIECES_V][4] = {}, most[2] = {-INFINITY, -INFINITY}, total[2] = {}, keep[2];
    uint32_t p[PIECES / 2][4];
    wait_copies<1>();
    publish();
    __syncthreads();
    begin_products();
    score(s, mine, k_tiles);
    wait_products<0>();
    settle(s);
    if (KEYS % STEP && steps == 1) mask(s, 0, query);
    soften(s, most, total, keep);
    pack(p, s);
    // The next scores and this step's gathering run on the tensor cores while the softmax runs here.
    for (int step = 1; step < steps; ++step) {
        wait_copies<0>();
        publish();
        __syncthreads();
        if (step + 1 < steps) load_rows<STEP, KEYS, HEAD>(k_tiles + (step + 1) % 2 * K_CELLS, k, (step + 1) * STEP);
        load_rows<STEP, KEYS, HEAD_V>(v_tiles + step % 2 * V_CELLS, v, step * STEP);
        commit_copies();
        begin_products();
        score(s, mine, k_tiles + step % 2 * K_CELLS);
        gather(sums, p, v_tiles + (step - 1) % 2 * V_CELLS);
        wait_products<1>();
        settle(s);
        if (KEYS % STEP && step + 1 == steps) mask(s, step * STEP, query);
        soften(s, most, total, keep);
        wait_products<0>();
        settle(sums);
#pragma unroll
        for (int j = 0; j < PIECES_V; ++j) sums[j][0] *= keep[0], sums[j][1] *= keep[0], sums[j][2] *= keep[1], sums[j][3] *= keep[1];
        pack(p, s);
    }
    wait_copies<0>();
    publish();
    __syncthreads();
    begin_products();
    gather(sums, p, v_tiles + (steps - 1) % 2 * V_CELLS);
    wait_products<0>();
    settle(sums);

#pragma unroll
    for (int h = 0; h < 2; ++h) {
        float all = total[h] + __shfl_xor_sync(~0u, total[h], 1);
        all += __shfl_xor_sync(~0u, all, 2);
        const float factor = 1.0f / all;
        if (query + h * 8 >= QUERIES) continue;
#pragma unroll
        for (int j = 0; j < PIECES_V; ++j)
            *reinterpret_cast<__half2*>(out + (size_t)(query + h * 8) * HEAD_V + j * 8 + lane % 4 * 2) =
                __floats2half2_rn(sums[j][h * 2] * factor, sums[j][h * 2 + 1] * factor);
    }
}
#else  // chips without warpgroup instructions
// Shared memory one block may use on the chip this is compiled for, in bytes.
constexpr int shared_limit() {
    constexpr int archs[] = {__CUDA_ARCH_LIST__};
    return archs[0] == 800 || archs[0] == 870 ? 163 * 1024
         : archs[0] == 900 || archs[0] == 1000 || archs[0] == 1030 ? 227 * 1024
                                                                  : 99 * 1024;
}

// Starts a copy of 16 bytes from global to shared memory; 16 zero bytes where not `inside`.
__device__ __forceinline__ void copy16_async(void* to, const void* from, bool inside) {
    const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(to));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from),
                 "r"(inside ? 16 : 0)
                 : "memory");
}

__device__ __forceinline__ void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Waits until at most LEFT of this thread's groups of copies are under way.
template <int LEFT>
__device__ __forceinline__ void wait_copies() {
    asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory");
}

// Four 8x8 matrices of 16-bit elements (or 8x4 of 32-bit ones); each lane names one row of 16 bytes.
__device__ __forceinline__ void load_matrices(uint32_t (&r)[4], const void* row) {
    const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(row));
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 { %0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address)
                 : "memory");
}

__device__ __forceinline__ void load_matrices_transposed(uint32_t (&r)[4], const void* row) {
    const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(row));
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 { %0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address)
                 : "memory");
}

// c[16x8] += a[16x16] b[16x8], half operands, float sums. Lane (g, t) = (lane / 4, lane % 4) holds
// rows g and g + 8 and columns 2t and 2t + 1 of c.
__device__ __forceinline__ void mma_half(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
    asm(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 { %0,%1,%2,%3}, { %4,%5,%6,%7}, { %8,%9}, "
        "{ %0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// c[16x8] += a[16x8] b[8x8], TF32 operands (the low 13 bits of a float are not looked at).
__device__ __forceinline__ void mma_tf32(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
    asm(
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 { %0,%1,%2,%3}, { %4,%5,%6,%7}, { %8,%9}, "
        "{ %0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// The nearest number with 11 significant bits.
__device__ __forceinline__ uint32_t to_tf32(float x) {
    uint32_t r;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(r) : "f"(x));
    return r;
}

constexpr int WARPS = 4;
constexpr int TILE_KEYS = 64;
// Fragments of 16 queries per warp.
constexpr int ROWS = 1;
constexpr int WARP_QUERIES = ROWS * 16;
constexpr int STAGES = 2;

constexpr int THREADS = WARPS * 32, TILE_QUERIES = WARPS * WARP_QUERIES;
constexpr int QUERY_TILES = (QUERIES + TILE_QUERIES - 1) / TILE_QUERIES;
constexpr int VECTOR = 16 / sizeof(__half);
constexpr int up(int x, int unit) { return (x + unit - 1) / unit * unit; }
constexpr int WIDTH = up(HEAD, 16), WIDTH_V = up(HEAD_V, 16);  // filled up with zeros
constexpr int PITCH = WIDTH, PITCH_V = WIDTH_V;
constexpr int stage_size(int keys) { return keys * (PITCH + PITCH_V); }
constexpr int bytes(int keys, int buffers) { return (TILE_QUERIES * PITCH + buffers * stage_size(keys)) * (int)sizeof(__half); }
// Keys at a time, as many as asked for where shared memory has room.
constexpr int STEP = bytes(TILE_KEYS, 2) <= shared_limit() ? TILE_KEYS : bytes(32, 2) <= shared_limit() ? 32 : 16;
constexpr int FITTING = (shared_limit() - bytes(0, 0)) / (stage_size(STEP) * (int)sizeof(__half));
constexpr int BUFFERS = STAGES < FITTING ? STAGES : FITTING;
constexpr int SHARED_BYTES = bytes(STEP, BUFFERS), STAGE = stage_size(STEP);

// Copies rows of a (ALL x WIDTH) matrix to shared memory, zeros outside.
template <int COUNT, int ALL, int COLUMNS, int FILLED, int TO_PITCH>
__device__ __forceinline__ void load_rows(__half* to, const __half* __restrict__ from, int first) {
    if constexpr (COLUMNS % VECTOR == 0) {
        constexpr int LANES = FILLED / VECTOR;
#pragma unroll
        for (int start = 0; start < COUNT * LANES; start += THREADS) {
            const int i = start + threadIdx.x, row = i / LANES, col = i % LANES * VECTOR;
            if (COUNT * LANES % THREADS && i >= COUNT * LANES) break;
            const bool inside = first + row < ALL && col < COLUMNS;
            const __half* source = from + (inside ? (size_t)(first + row) * COLUMNS + col : 0);
            copy16_async(to + row * TO_PITCH + col, source, inside);
        }
    } else
    for (int i = threadIdx.x; i < COUNT * FILLED; i += THREADS) {
        const int row = i / FILLED, col = i % FILLED;
        const bool inside = first + row < ALL && col < COLUMNS;
        to[row * TO_PITCH + col] = inside ? from[(size_t)(first + row) * COLUMNS + col] : __half(0.0f);
    }
}

__device__ __forceinline__ void load_step(__half* buffer, const __half* k, const __half* v, int first) {
    load_rows<STEP, KEYS, HEAD, WIDTH, PITCH>(buffer, k, first);
    load_rows<STEP, KEYS, HEAD_V, WIDTH_V, PITCH_V>(buffer + STEP * PITCH, v, first);
}

constexpr int PIECES = STEP / 8, PIECES_V = WIDTH_V / 8;  // 8-column fragments of the scores and of the result

// What a warp knows of its queries so far: row g and g + 8 of each fragment.
struct State {
    float out[ROWS][PIECES_V][4] = {};
    float most[ROWS][2], total[ROWS][2];
};

// scores = queries x keys of one buffer.
__device__ __forceinline__ void score(float (&s)[ROWS][PIECES][4], const uint32_t (&q)[WIDTH / 16][ROWS][4], const __half* k) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int j = 0; j < PIECES; j += 2)
#pragma unroll
        for (int d = 0; d < WIDTH; d += 16) {
            uint32_t b[4];
            load_matrices(b, k + (j * 8 + lane % 8 + lane / 16 * 8) * PITCH + d + lane / 8 % 2 * 8);
#pragma unroll
            for (int i = 0; i < ROWS; ++i) {
                mma_half(s[i][j], q[d / 16][i], b[0], b[1]);
                mma_half(s[i][j + 1], q[d / 16][i], b[2], b[3]);
            }
        }
}

// Takes away the scores of keys that are not there.
__device__ __forceinline__ void mask(float (&s)[ROWS][PIECES][4], int first_key, int first_query) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < ROWS; ++i)
#pragma unroll
        for (int j = 0; j < PIECES; ++j)
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                const int key = first_key + j * 8 + lane % 4 * 2 + e % 2;
                if (key >= KEYS) s[i][j][e] = -INFINITY;
            }
}

// Scores become probabilities relative to the running maximum, in halves and in the layout of
// a left operand; what was summed up is brought to the new maximum.
__device__ __forceinline__ void soften(uint32_t (&p)[PIECES / 2][ROWS][4], float (&s)[ROWS][PIECES][4], State& state) {
#pragma unroll
    for (int i = 0; i < ROWS; ++i)
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            float most = s[i][0][h * 2];
#pragma unroll
            for (int j = 0; j < PIECES; ++j) most = fmaxf(most, fmaxf(s[i][j][h * 2], s[i][j][h * 2 + 1]));
            most = fmaxf(most, __shfl_xor_sync(~0u, most, 1));
            most = fmaxf(most, __shfl_xor_sync(~0u, most, 2));
            most = fmaxf(most, state.most[i][h]);
            const float keep = power((state.most[i][h] - most) * SCALE);
            state.most[i][h] = most;
            state.total[i][h] *= keep;
#pragma unroll
            for (int j = 0; j < PIECES_V; ++j) state.out[i][j][h * 2] *= keep, state.out[i][j][h * 2 + 1] *= keep;
            float total = 0.0f, offset = -state.most[i][h] * SCALE;
            // One rounding fewer per score, as long as the maximum's own rounding is harmless.
            if (__any_sync(~0u, fabsf(offset) > 4096.0f)) {
                offset = 0.0f;
#pragma unroll
                for (int j = 0; j < PIECES; ++j) s[i][j][h * 2] -= state.most[i][h], s[i][j][h * 2 + 1] -= state.most[i][h];
            }
#pragma unroll
            for (int j = 0; j < PIECES; ++j) {
                const float x = fmaf(s[i][j][h * 2], SCALE, offset), y = fmaf(s[i][j][h * 2 + 1], SCALE, offset);
                const float first = power(x), second = power(y);
                total += first + second;
                const __half2 pair = __floats2half2_rn(first, second);
                p[j / 2][i][j % 2 * 2 + h] = *reinterpret_cast<const uint32_t*>(&pair);
            }
            state.total[i][h] += total;
        }
}

// out += probabilities x values of one buffer.
__device__ __forceinline__ void gather(State& state, const uint32_t (&p)[PIECES / 2][ROWS][4], const __half* v) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int key = 0; key < STEP; key += 16)
#pragma unroll
        for (int j = 0; j < PIECES_V; j += 2) {
            uint32_t b[4];
            load_matrices_transposed(b, v + (key + lane % 16) * PITCH_V + j * 8 + lane / 16 * 8);
#pragma unroll
            for (int i = 0; i < ROWS; ++i) {
                mma_half(state.out[i][j], p[key / 16][i], b[0], b[1]);
                mma_half(state.out[i][j + 1], p[key / 16][i], b[2], b[3]);
            }
        }
}

__global__ void __launch_bounds__(THREADS)
attention(const __half* __restrict__ q, const __half* __restrict__ k, const __half* __restrict__ v, __half* __restrict__ out) {
    extern __shared__ __align__(16) unsigned char memory[];
    __half* queries = reinterpret_cast<__half*>(memory);
    __half* buffers = queries + TILE_QUERIES * PITCH;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const size_t head = blockIdx.x / QUERY_TILES;
    const int tile = blockIdx.x % QUERY_TILES;
    constexpr int steps = (KEYS + STEP - 1) / STEP;
    q += head * QUERIES * HEAD;
    k += head * KEYS * HEAD;
    v += head * KEYS * HEAD_V;
    out += head * QUERIES * HEAD_V;
    const int first_query = tile * TILE_QUERIES + warp * WARP_QUERIES;
    load_rows<TILE_QUERIES, QUERIES, HEAD, WIDTH, PITCH>(queries, q, tile * TILE_QUERIES);
    commit_copies();
#pragma unroll
    for (int s = 0; s < BUFFERS - 1; ++s) {
        if (s < steps) load_step(buffers + s * STAGE, k, v, s * STEP);
        commit_copies();
    }
    wait_copies<BUFFERS - 1>();
    __syncthreads();

    State state;
    uint32_t query[WIDTH / 16][ROWS][4];
#pragma unroll
    for (int d = 0; d < WIDTH / 16; ++d)
#pragma unroll
        for (int i = 0; i < ROWS; ++i)
            load_matrices(query[d][i], queries + (warp * WARP_QUERIES + i * 16 + lane % 16) * PITCH + d * 16 + lane / 16 * 8);
#pragma unroll
    for (int i = 0; i < ROWS; ++i)
#pragma unroll
        for (int h = 0; h < 2; ++h) state.most[i][h] = -INFINITY, state.total[i][h] = 0.0f;
    int reading = 0, writing = BUFFERS - 1;
    for (int step = 0; step < steps; ++step) {
        wait_copies<BUFFERS - 2>();
        __syncthreads();
        if (step + BUFFERS - 1 < steps) load_step(buffers + writing * STAGE, k, v, (step + BUFFERS - 1) * STEP);
        commit_copies();
        const __half* buffer = buffers + reading * STAGE;
        float s[ROWS][PIECES][4] = {};
        uint32_t p[PIECES / 2][ROWS][4];
        score(s, query, buffer);
        if (KEYS % STEP && step + 1 == steps) mask(s, step * STEP, first_query);
        soften(p, s, state);
        gather(state, p, buffer + STEP * PITCH);

        reading = reading + 1 == BUFFERS ? 0 : reading + 1;
        writing = writing + 1 == BUFFERS ? 0 : writing + 1;
    }

#pragma unroll
    for (int i = 0; i < ROWS; ++i)
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            float total = state.total[i][h];
            total += __shfl_xor_sync(~0u, total, 1);
            total += __shfl_xor_sync(~0u, total, 2);
            const int row = first_query + i * 16 + h * 8 + lane / 4;
            const float factor = 1.0f / total;
#pragma unroll
            for (int j = 0; j < PIECES_V; ++j) {
                const int col = j * 8 + lane % 4 * 2;
                if (row >= QUERIES || col >= HEAD_V) continue;
                __half* to = out + (size_t)row * HEAD_V + col;
                const float first = state.out[i][j][h * 2] * factor, second = state.out[i][j][h * 2 + 1] * factor;
                if (HEAD_V % 2 == 0) {
                    *reinterpret_cast<__half2*>(to) = __floats2half2_rn(first, second);
                } else {
                    store(to, first);
                    if (col + 1 < HEAD_V) store(to + 1, second);
                }
            }
        }
}
#endif

extern "C" int launch(const __half* q, const __half* k, const __half* v, __half* out, void* workspace, cudaStream_t stream) {
    const int status = (int)cudaFuncSetAttribute(attention, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED_BYTES);
    if (status) return status;
    attention<<<(unsigned)(HEADS * QUERY_TILES), THREADS, SHARED_BYTES, stream>>>(q, k, v, out);
    return (int)cudaGetLastError();
}
