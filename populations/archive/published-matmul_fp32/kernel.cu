// catalogue: matmul shared_tiles vector_loads split_half async_copy split_warpgroups #7273bb60
// C[M,N] = A[M,K] B[K,N]; row-major.
constexpr int BATCH = 1, M = 4096, N = 4096, K = 4096;

__device__ __forceinline__ float to_float(float x) { return x; }
__device__ __forceinline__ void store(float* to, float x) { *to = x; }

constexpr bool A_K_INNER = true, B_K_INNER = false;
constexpr int A_HEIGHT = A_K_INNER ? M : K, A_WIDTH = A_K_INNER ? K : M;
constexpr int B_HEIGHT = B_K_INNER ? N : K, B_WIDTH = B_K_INNER ? K : N;
// Rows of the half copies, rounded up to whole vectors.
constexpr int A_ROW = (A_WIDTH + 7) / 8 * 8, B_ROW = (B_WIDTH + 7) / 8 * 8;
constexpr int PLANES = 2;
using Tile = __half;
constexpr int VECTOR = 16 / sizeof(Tile);

using Result = float;
__device__ __forceinline__ void put(Result* to, float x, int) { store(to, x); }

// Each scale tile of A and B, SCALE_MN x SCALE_K elements, gets a power of two that brings its
// largest magnitude to [2^14, 2^15), where a half has all its bits and far smaller ones have too.
constexpr int SCALE_MN = 128, SCALE_K = 64;
constexpr int SCALES_K = (K + SCALE_K - 1) / SCALE_K;
constexpr int A_SCALES = (M + SCALE_MN - 1) / SCALE_MN, B_SCALES = (N + SCALE_MN - 1) / SCALE_MN;
constexpr size_t A_PLANE = (size_t)BATCH * A_HEIGHT * A_ROW, B_PLANE = (size_t)BATCH * B_HEIGHT * B_ROW;

// Writes one scale tile as half high and low parts; `exponents` gets the scale's exponent.
template <bool K_INNER, int HEIGHT, int WIDTH, int ROW, int SCALES>
__global__ void __launch_bounds__(256)
convert(const float* __restrict__ x, __half* __restrict__ to, size_t plane, int* __restrict__ exponents) {
    constexpr int R = K_INNER ? SCALE_MN : SCALE_K, C = K_INNER ? SCALE_K : SCALE_MN;
    constexpr int LANES = C / 4, STEP = 256 / LANES, COUNT = R / STEP;
    __shared__ float largest[8];
    const int tile_k = blockIdx.x % SCALES_K, tile_mn = blockIdx.x / SCALES_K % SCALES;
    const size_t batch = blockIdx.x / (SCALES_K * SCALES);
    const int row0 = (K_INNER ? tile_mn : tile_k) * R + threadIdx.x / LANES;
    const int col = (K_INNER ? tile_k : tile_mn) * C + threadIdx.x % LANES * 4;
    x += batch * HEIGHT * WIDTH;
    to += batch * HEIGHT * ROW;
    float4 v[COUNT];
    float most = 0.0f;
#pragma unroll
    for (int i = 0; i < COUNT; ++i) {
        const int row = row0 + i * STEP;
        const float* from = x + (size_t)row * WIDTH + col;
        v[i] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        if (row < HEIGHT) {
            if (WIDTH % 4 == 0) {
                if (col < WIDTH) v[i] = *reinterpret_cast<const float4*>(from);
            } else {
                if (col < WIDTH) v[i].x = from[0];
                if (col + 1 < WIDTH) v[i].y = from[1];
                if (col + 2 < WIDTH) v[i].z = from[2];
                if (col + 3 < WIDTH) v[i].w = from[3];
            }
        }
        most = fmaxf(most, fmaxf(fmaxf(fabsf(v[i].x), fabsf(v[i].y)), fmaxf(fabsf(v[i].z), fabsf(v[i].w))));
    }
    for (int distance = 16; distance; distance /= 2) most = fmaxf(most, __shfl_xor_sync(~0u, most, distance));
    if (threadIdx.x % 32 == 0) largest[threadIdx.x / 32] = most;
    __syncthreads();
    for (int i = 0; i < 8; ++i) most = fmaxf(most, largest[i]);
    const int exponent = most > 0.0f ? max(ilogbf(most), -100) - 14 : 0;
    const float scale = ldexpf(1.0f, -exponent);
    if (threadIdx.x == 0) exponents[blockIdx.x] = exponent;
#pragma unroll
    for (int i = 0; i < COUNT; ++i) {
        const int row = row0 + i * STEP;
        if (row >= HEIGHT || col >= ROW) continue;
        const float s[4] = {v[i].x * scale, v[i].y * scale, v[i].z * scale, v[i].w * scale};
        __align__(8) __half high[4];
#pragma unroll
        for (int j = 0; j < 4; ++j) high[j] = __float2half_rn(s[j]);
        *reinterpret_cast<uint2*>(to + (size_t)row * ROW + col) = *reinterpret_cast<const uint2*>(high);
        __align__(8) __half low[4];
#pragma unroll
        for (int j = 0; j < 4; ++j) low[j] = __float2half_rn(s[j] - __half2float(high[j]));
        *reinterpret_cast<uint2*>(to + plane + (size_t)row * ROW + col) = *reinterpret_cast<const uint2*>(low);
    }
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

// A block's tile of C: 64 rows per warpgroup, and columns.
#define GROUPS 2  // tune: 1 2 3
#define WIDTH_N 128  // tune: 64 128
#define RING 3  // tune: 3 4 5 6
constexpr int TILE_M = GROUPS * 64, THREADS = GROUPS * 128, TILE_N = WIDTH_N, DEPTH = 64, COLUMNS = TILE_N / 8;
constexpr int A_CELLS = TILE_M * DEPTH, B_CELLS = TILE_N * DEPTH, STAGE_CELLS = PLANES * (A_CELLS + B_CELLS);
constexpr int FITTING = 226 * 1024 / (STAGE_CELLS * 2), BUFFERS = RING < FITTING ? RING : FITTING;
constexpr int SHARED_BYTES = BUFFERS * STAGE_CELLS * 2 + 1024;
constexpr int TILES_M = (M + TILE_M - 1) / TILE_M, TILES_N = (N + TILE_N - 1) / TILE_N;
constexpr int STEPS = (K + DEPTH - 1) / DEPTH;

#if WIDTH_N == 64
// c[64x64] = or += a[64x16] b[16x64]; keeps what c held only if `add`.
__device__ __forceinline__ void multiply(float (&c)[8][4], uint64_t a, uint64_t b, int add) {
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
        "%32, %33, p, 1, 1, 0, 1; }"
        : "+f"(c[0][0]), "+f"(c[0][1]), "+f"(c[0][2]), "+f"(c[0][3]), "+f"(c[1][0]), "+f"(c[1][1]), "+f"(c[1][2]), "+f"(c[1][3]), "+f"(c[2][0]), "+f"(c[2][1]), "+f"(c[2][2]), "+f"(c[2][3]), "+f"(c[3][0]), "+f"(c[3][1]), "+f"(c[3][2]), "+f"(c[3][3]), "+f"(c[4][0]), "+f"(c[4][1]), "+f"(c[4][2]), "+f"(c[4][3]), "+f"(c[5][0]), "+f"(c[5][1]), "+f"(c[5][2]), "+f"(c[5][3]), "+f"(c[6][0]), "+f"(c[6][1]), "+f"(c[6][2]), "+f"(c[6][3]), "+f"(c[7][0]), "+f"(c[7][1]), "+f"(c[7][2]), "+f"(c[7][3])
        : "l"(a), "l"(b), "r"(add));
}

#elif WIDTH_N == 128
// c[64x128] = or += a[64x16] b[16x128]; keeps what c held only if `add`.
__device__ __forceinline__ void multiply(float (&c)[16][4], uint64_t a, uint64_t b, int add) {
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
        "%64, %65, p, 1, 1, 0, 1; }"
        : "+f"(c[0][0]), "+f"(c[0][1]), "+f"(c[0][2]), "+f"(c[0][3]), "+f"(c[1][0]), "+f"(c[1][1]), "+f"(c[1][2]), "+f"(c[1][3]), "+f"(c[2][0]), "+f"(c[2][1]), "+f"(c[2][2]), "+f"(c[2][3]), "+f"(c[3][0]), "+f"(c[3][1]), "+f"(c[3][2]), "+f"(c[3][3]), "+f"(c[4][0]), "+f"(c[4][1]), "+f"(c[4][2]), "+f"(c[4][3]), "+f"(c[5][0]), "+f"(c[5][1]), "+f"(c[5][2]), "+f"(c[5][3]), "+f"(c[6][0]), "+f"(c[6][1]), "+f"(c[6][2]), "+f"(c[6][3]), "+f"(c[7][0]), "+f"(c[7][1]), "+f"(c[7][2]), "+f"(c[7][3]), "+f"(c[8][0]), "+f"(c[8][1]), "+f"(c[8][2]), "+f"(c[8][3]), "+f"(c[9][0]), "+f"(c[9][1]), "+f"(c[9][2]), "+f"(c[9][3]), "+f"(c[10][0]), "+f"(c[10][1]), "+f"(c[10][2]), "+f"(c[10][3]), "+f"(c[11][0]), "+f"(c[11][1]), "+f"(c[11][2]), "+f"(c[11][3]), "+f"(c[12][0]), "+f"(c[12][1]), "+f"(c[12][2]), "+f"(c[12][3]), "+f"(c[13][0]), "+f"(c[13][1]), "+f"(c[13][2]), "+f"(c[13][3]), "+f"(c[14][0]), "+f"(c[14][1]), "+f"(c[14][2]), "+f"(c[14][3]), "+f"(c[15][0]), "+f"(c[15][1]), "+f"(c[15][2]), "+f"(c[15][3])
        : "l"(a), "l"(b), "r"(add));
}

#else
// c[64x256] = or += a[64x16] b[16x256]; keeps what c held only if `add`.
__device__ __forceinline__ void multiply(float (&c)[32][4], uint64_t a, uint64_t b, int add) {
    asm volatile(
        "{ .reg .pred p; setp.ne.b32 p, %130, 0; "
        "wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 { "
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
        "%60, %61, %62, %63, "
        "%64, %65, %66, %67, "
        "%68, %69, %70, %71, "
        "%72, %73, %74, %75, "
        "%76, %77, %78, %79, "
        "%80, %81, %82, %83, "
        "%84, %85, %86, %87, "
        "%88, %89, %90, %91, "
        "%92, %93, %94, %95, "
        "%96, %97, %98, %99, "
        "%100, %101, %102, %103, "
        "%104, %105, %106, %107, "
        "%108, %109, %110, %111, "
        "%112, %113, %114, %115, "
        "%116, %117, %118, %119, "
        "%120, %121, %122, %123, "
        "%124, %125, %126, %127 },  "
        "%128, %129, p, 1, 1, 0, 1; }"
        : "+f"(c[0][0]), "+f"(c[0][1]), "+f"(c[0][2]), "+f"(c[0][3]), "+f"(c[1][0]), "+f"(c[1][1]), "+f"(c[1][2]), "+f"(c[1][3]), "+f"(c[2][0]), "+f"(c[2][1]), "+f"(c[2][2]), "+f"(c[2][3]), "+f"(c[3][0]), "+f"(c[3][1]), "+f"(c[3][2]), "+f"(c[3][3]), "+f"(c[4][0]), "+f"(c[4][1]), "+f"(c[4][2]), "+f"(c[4][3]), "+f"(c[5][0]), "+f"(c[5][1]), "+f"(c[5][2]), "+f"(c[5][3]), "+f"(c[6][0]), "+f"(c[6][1]), "+f"(c[6][2]), "+f"(c[6][3]), "+f"(c[7][0]), "+f"(c[7][1]), "+f"(c[7][2]), "+f"(c[7][3]), "+f"(c[8][0]), "+f"(c[8][1]), "+f"(c[8][2]), "+f"(c[8][3]), "+f"(c[9][0]), "+f"(c[9][1]), "+f"(c[9][2]), "+f"(c[9][3]), "+f"(c[10][0]), "+f"(c[10][1]), "+f"(c[10][2]), "+f"(c[10][3]), "+f"(c[11][0]), "+f"(c[11][1]), "+f"(c[11][2]), "+f"(c[11][3]), "+f"(c[12][0]), "+f"(c[12][1]), "+f"(c[12][2]), "+f"(c[12][3]), "+f"(c[13][0]), "+f"(c[13][1]), "+f"(c[13][2]), "+f"(c[13][3]), "+f"(c[14][0]), "+f"(c[14][1]), "+f"(c[14][2]), "+f"(c[14][3]), "+f"(c[15][0]), "+f"(c[15][1]), "+f"(c[15][2]), "+f"(c[15][3]), "+f"(c[16][0]), "+f"(c[16][1]), "+f"(c[16][2]), "+f"(c[16][3]), "+f"(c[17][0]), "+f"(c[17][1]), "+f"(c[17][2]), "+f"(c[17][3]), "+f"(c[18][0]), "+f"(c[18][1]), "+f"(c[18][2]), "+f"(c[18][3]), "+f"(c[19][0]), "+f"(c[19][1]), "+f"(c[19][2]), "+f"(c[19][3]), "+f"(c[20][0]), "+f"(c[20][1]), "+f"(c[20][2]), "+f"(c[20][3]), "+f"(c[21][0]), "+f"(c[21][1]), "+f"(c[21][2]), "+f"(c[21][3]), "+f"(c[22][0]), "+f"(c[22][1]), "+f"(c[22][2]), "+f"(c[22][3]), "+f"(c[23][0]), "+f"(c[23][1]), "+f"(c[23][2]), "+f"(c[23][3]), "+f"(c[24][0]), "+f"(c[24][1]), "+f"(c[24][2]), "+f"(c[24][3]), "+f"(c[25][0]), "+f"(c[25][1]), "+f"(c[25][2]), "+f"(c[25][3]), "+f"(c[26][0]), "+f"(c[26][1]), "+f"(c[26][2]), "+f"(c[26][3]), "+f"(c[27][0]), "+f"(c[27][1]), "+f"(c[27][2]), "+f"(c[27][3]), "+f"(c[28][0]), "+f"(c[28][1]), "+f"(c[28][2]), "+f"(c[28][3]), "+f"(c[29][0]), "+f"(c[29][1]), "+f"(c[29][2]), "+f"(c[29][3]), "+f"(c[30][0]), "+f"(c[30][1]), "+f"(c[30][2]), "+f"(c[30][3]), "+f"(c[31][0]), "+f"(c[31][1]), "+f"(c[31][2]), "+f"(c[31][3])
        : "l"(a), "l"(b), "r"(add));
}

#endif
// Copies an R x C tile at (row0, col0) of a HEIGHT x WIDTH matrix to swizzled tiles of 64 columns.
template <int R, int C, int HEIGHT, int WIDTH>
__device__ __forceinline__ void load_tile(__half* tile, const __half* matrix, int row0, int col0) {
    constexpr int LANES = C / 8, ALL = R * LANES;
#pragma unroll
    for (int start = 0; start < ALL; start += THREADS) {
        const int i = start + threadIdx.x, row = i / LANES, col = i % LANES * 8;
        if (ALL % THREADS && i >= ALL) break;
        const bool inside = row0 + row < HEIGHT && col0 + col < WIDTH;
        copy16_async(tile + col / 64 * R * 64 + swizzled(row, col % 64),
                     matrix + (inside ? (size_t)(row0 + row) * WIDTH + col0 + col : 0), inside);
    }
}

// Step `step` along K of this block's tiles of A and B, into one buffer.
__device__ __forceinline__ void load_step(__half* buffer, const __half* a, const __half* b, int m0, int n0, int step) {
    const int k0 = step * DEPTH;
    load_tile<TILE_M, DEPTH, A_HEIGHT, A_ROW>(buffer, a, A_K_INNER ? m0 : k0, A_K_INNER ? k0 : m0);
    load_tile<DEPTH, TILE_N, B_HEIGHT, B_ROW>(buffer + PLANES * A_CELLS, b, B_K_INNER ? n0 : k0, B_K_INNER ? k0 : n0);
    load_tile<TILE_M, DEPTH, A_HEIGHT, A_ROW>(buffer + A_CELLS, a + A_PLANE, A_K_INNER ? m0 : k0, A_K_INNER ? k0 : m0);
    load_tile<DEPTH, TILE_N, B_HEIGHT, B_ROW>(buffer + PLANES * A_CELLS + B_CELLS, b + B_PLANE, B_K_INNER ? n0 : k0, B_K_INNER ? k0 : n0);
}

// Begins adding one buffer's product to c; keeps what c held only if `add`.
__device__ __forceinline__ void compute(float (&c)[COLUMNS][4], const __half* buffer, int group, int add) {
    const __half* a = buffer + group * 64 * 64;
    const __half* b = buffer + PLANES * A_CELLS;
    // The small products first: what the tensor cores cut off is relative to the sum so far.
#pragma unroll
    for (int k = 0; k < DEPTH; k += 16) {
        multiply(c, describe(a + A_CELLS + k, DEPTH * 128), describe(b + k * 64, DEPTH * 128), add | k);
        multiply(c, describe(a + k, DEPTH * 128), describe(b + B_CELLS + k * 64, DEPTH * 128), 1);
    }
#pragma unroll
    for (int k = 0; k < DEPTH; k += 16)
        multiply(c, describe(a + k, DEPTH * 128), describe(b + k * 64, DEPTH * 128), 1);
    commit_products();
}

__global__ void __launch_bounds__(THREADS, 1)
matmul(const __half* __restrict__ a, const __half* __restrict__ b, const int* __restrict__ a_exponents, const int* __restrict__ b_exponents, Result* __restrict__ out) {
    extern __shared__ unsigned char memory[];
    __half* buffers = reinterpret_cast<__half*>(memory + (1024 - __cvta_generic_to_shared(memory) % 1024) % 1024);
    const int tile = blockIdx.x % (TILES_M * TILES_N), group = threadIdx.x / 128, lane = threadIdx.x % 32;
    const size_t batch = blockIdx.x / (TILES_M * TILES_N);
    const int m0 = tile / TILES_N * TILE_M, n0 = tile % TILES_N * TILE_N;
    a += batch * A_HEIGHT * A_ROW;
    b += batch * B_HEIGHT * B_ROW;
    out += batch * M * N;
    a_exponents += batch * A_SCALES * SCALES_K + min((m0 + group * 64) / SCALE_MN, A_SCALES - 1) * SCALES_K;
    b_exponents += batch * B_SCALES * SCALES_K + n0 / SCALE_MN * SCALES_K;
    float c[COLUMNS][4] = {};

    constexpr int AHEAD = BUFFERS - 1;
#pragma unroll
    for (int s = 0; s < AHEAD; ++s) {
        if (s < STEPS) load_step(buffers + s * STAGE_CELLS, a, b, m0, n0, s);
        commit_copies();
    }
    int reading = 0, writing = AHEAD;
    for (int step = 0; step < STEPS; ++step) {
        wait_copies<AHEAD - 1>();
        publish();
        __syncthreads();
        // Tensor cores cut sums off rather than round them: only short ones are left to them.
        float part[COLUMNS][4];
        begin_products();
        compute(part, buffers + reading * STAGE_CELLS, group, 0);
        if (step + AHEAD < STEPS) load_step(buffers + writing * STAGE_CELLS, a, b, m0, n0, step + AHEAD);
        commit_copies();
        const float scale = ldexpf(1.0f, a_exponents[step * DEPTH / SCALE_K] + b_exponents[step * DEPTH / SCALE_K]);
        wait_products<0>();
        settle(part);
#pragma unroll
        for (int j = 0; j < COLUMNS; ++j)
#pragma unroll
            for (int q = 0; q < 4; ++q) c[j][q] = fmaf(part[j][q], scale, c[j][q]);
        reading = reading + 1 == BUFFERS ? 0 : reading + 1;
        writing = writing + 1 == BUFFERS ? 0 : writing + 1;
    }
    wait_products<0>();
    settle(c);

#pragma unroll
    for (int j = 0; j < COLUMNS; ++j)
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            const int row = m0 + threadIdx.x / 32 * 16 + h * 8 + lane / 4, n = n0 + j * 8 + lane % 4 * 2;
            if (row >= M || n >= N) continue;
            Result* to = out + (size_t)row * N + n;
            if (N % 2 == 0) {
                __align__(8) Result pair[2];
                put(pair, c[j][h * 2], 0);
                put(pair + 1, c[j][h * 2 + 1], 0);
                using Pair = float2;
                *reinterpret_cast<Pair*>(to) = *reinterpret_cast<const Pair*>(pair);
            } else {
                put(to, c[j][h * 2], 0);
                if (n + 1 < N) put(to + 1, c[j][h * 2 + 1], 0);
            }
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

// A block's tile of C, and a warp's part of it.
constexpr int TILE_M = 128;
constexpr int TILE_N = 128;
constexpr int WARP_M = 64;
constexpr int WARP_N = 32;
constexpr int TILE_K = 32;
constexpr int STAGES = 3;

constexpr int pitch(bool, int columns) { return columns; }
constexpr int a_size(int k) { return (A_K_INNER ? TILE_M : k) * pitch(A_K_INNER, A_K_INNER ? k : TILE_M); }
constexpr int b_size(int k) { return (B_K_INNER ? TILE_N : k) * pitch(B_K_INNER, B_K_INNER ? k : TILE_N); }
constexpr int stage_size(int k) { return PLANES * (a_size(k) + b_size(k)); }
constexpr int stage_bytes(int k) { return stage_size(k) * (int)sizeof(Tile); }
// As deep as asked for, as far as shared memory reaches.
constexpr int DEPTH = 2 * stage_bytes(TILE_K) <= shared_limit() ? TILE_K : 16;
constexpr int FITTING = shared_limit() / stage_bytes(DEPTH);
constexpr int BUFFERS = STAGES < FITTING ? STAGES : FITTING;
constexpr int SHARED_BYTES = BUFFERS * stage_bytes(DEPTH);
constexpr int A_CELLS = a_size(DEPTH), B_CELLS = b_size(DEPTH), STAGE_CELLS = stage_size(DEPTH);
constexpr int A_ROWS = A_K_INNER ? TILE_M : DEPTH, A_COLS = A_K_INNER ? DEPTH : TILE_M;
constexpr int B_ROWS = B_K_INNER ? TILE_N : DEPTH, B_COLS = B_K_INNER ? DEPTH : TILE_N;
constexpr int A_PITCH = pitch(A_K_INNER, A_COLS), B_PITCH = pitch(B_K_INNER, B_COLS);
constexpr int WARPS_N = TILE_N / WARP_N, THREADS = 32 * (TILE_M / WARP_M) * WARPS_N;
constexpr int ROWS = WARP_M / 16, COLUMNS = WARP_N / 8;  // 16x8 fragments of a warp
constexpr int TILES_M = (M + TILE_M - 1) / TILE_M, TILES_N = (N + TILE_N - 1) / TILE_N;
constexpr int STEPS = (K + DEPTH - 1) / DEPTH;

// Copies an R x C tile at (row0, col0) of a HEIGHT x WIDTH matrix to shared memory, zeros outside.
template <int R, int C, int PITCH, int HEIGHT, int WIDTH>
__device__ __forceinline__ void load_tile(Tile* tile, const Tile* matrix, int row0, int col0) {
    if constexpr (WIDTH % VECTOR == 0) {
        constexpr int LANES = C / VECTOR, ALL = R * LANES;
#pragma unroll
        for (int start = 0; start < ALL; start += THREADS) {
            const int i = start + threadIdx.x;
            if (ALL % THREADS && i >= ALL) break;
            const int row = i / LANES, col = i % LANES * VECTOR;
            const bool inside = row0 + row < HEIGHT && col0 + col < WIDTH;
            const Tile* from = matrix + (inside ? (size_t)(row0 + row) * WIDTH + col0 + col : 0);
            copy16_async(tile + row * PITCH + col, from, inside);
        }
    } else
    for (int i = threadIdx.x; i < R * C; i += THREADS) {
        const int row = i / C, col = i % C;
        const bool inside = row0 + row < HEIGHT && col0 + col < WIDTH;
        tile[row * PITCH + col] = inside ? matrix[(size_t)(row0 + row) * WIDTH + col0 + col] : Tile(0.0f);
    }
}

// Step `step` along K of this block's tiles of A and B, into one buffer.
__device__ __forceinline__ void load_step(Tile* buffer, const Tile* a, const Tile* b, int m0, int n0, int step) {
    const int k0 = step * DEPTH;
    load_tile<A_ROWS, A_COLS, A_PITCH, A_HEIGHT, A_ROW>(buffer, a, A_K_INNER ? m0 : k0, A_K_INNER ? k0 : m0);
    load_tile<B_ROWS, B_COLS, B_PITCH, B_HEIGHT, B_ROW>(buffer + PLANES * A_CELLS, b, B_K_INNER ? n0 : k0, B_K_INNER ? k0 : n0);
    load_tile<A_ROWS, A_COLS, A_PITCH, A_HEIGHT, A_ROW>(buffer + A_CELLS, a + A_PLANE, A_K_INNER ? m0 : k0, A_K_INNER ? k0 : m0);
    load_tile<B_ROWS, B_COLS, B_PITCH, B_HEIGHT, B_ROW>(buffer + PLANES * A_CELLS + B_CELLS, b + B_PLANE, B_K_INNER ? n0 : k0, B_K_INNER ? k0 : n0);
}

// The fragments of one step of 16 along k.
__device__ __forceinline__ void load_a(uint32_t (&f)[ROWS][4], const __half* tile, int m, int k) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < ROWS; ++i) {
        if constexpr (A_K_INNER)
            load_matrices(f[i], tile + (m + i * 16 + lane % 16) * A_PITCH + k + lane / 16 * 8);
        else
            load_matrices_transposed(f[i], tile + (k + lane % 8 + lane / 16 * 8) * A_PITCH + m + i * 16 + lane / 8 % 2 * 8);
    }
}

// Two fragments, 16 columns.
__device__ __forceinline__ void load_b(uint32_t (&f)[4], const __half* tile, int n, int k) {
    const int lane = threadIdx.x % 32;
    if constexpr (B_K_INNER)
        load_matrices(f, tile + (n + lane % 8 + lane / 16 * 8) * B_PITCH + k + lane / 8 % 2 * 8);
    else
        load_matrices_transposed(f, tile + (k + lane % 16) * B_PITCH + n + lane / 16 * 8);
}

// Adds the product of one buffer's tiles to c, times the scale of its halves.
__device__ __forceinline__ void compute(float (&c)[ROWS][COLUMNS][4], const Tile* buffer, int m, int n, float scale) {
    const Tile* tile_b = buffer + PLANES * A_CELLS;
#pragma unroll
    for (int k = 0; k < DEPTH; k += 16) {
        uint32_t a[ROWS][4];
        load_a(a, buffer, m, k);
        uint32_t rest_a[ROWS][4];
        load_a(rest_a, buffer + A_CELLS, m, k);
#pragma unroll
        for (int j = 0; j < COLUMNS; j += 2) {
            uint32_t b[4];
            load_b(b, tile_b, n + j * 8, k);
            uint32_t rest_b[4];
            load_b(rest_b, tile_b + B_CELLS, n + j * 8, k);
            // Tensor cores cut sums off rather than round them: only short ones are left to
            // them, the small products first.
            float part[2][ROWS][4] = {};
#pragma unroll
            for (int i = 0; i < 2 * ROWS; ++i) mma_half(part[i % 2][i / 2], rest_a[i / 2], b[i % 2 * 2], b[i % 2 * 2 + 1]);
#pragma unroll
            for (int i = 0; i < 2 * ROWS; ++i) mma_half(part[i % 2][i / 2], a[i / 2], rest_b[i % 2 * 2], rest_b[i % 2 * 2 + 1]);
#pragma unroll
            for (int i = 0; i < 2 * ROWS; ++i) mma_half(part[i % 2][i / 2], a[i / 2], b[i % 2 * 2], b[i % 2 * 2 + 1]);
#pragma unroll
            for (int i = 0; i < ROWS; ++i)
#pragma unroll
                for (int q = 0; q < 8; ++q) {
                    float& sum = c[i][j + q / 4][q % 4];
                    sum = fmaf(part[q / 4][i][q % 4], scale, sum);
                }
        }
    }
}

__global__ void __launch_bounds__(THREADS)
matmul(const Tile* __restrict__ a, const Tile* __restrict__ b, const int* __restrict__ a_exponents, const int* __restrict__ b_exponents, Result* __restrict__ out) {
    extern __shared__ __align__(16) unsigned char memory[];
    Tile* buffers = reinterpret_cast<Tile*>(memory);
    const int tile = blockIdx.x % (TILES_M * TILES_N);
    const size_t batch = blockIdx.x / (TILES_M * TILES_N);
    const int m0 = tile / TILES_N * TILE_M, n0 = tile % TILES_N * TILE_N;
    a += batch * A_HEIGHT * A_ROW;
    b += batch * B_HEIGHT * B_ROW;
    a_exponents += batch * A_SCALES * SCALES_K;
    b_exponents += batch * B_SCALES * SCALES_K;
    out += batch * M * N;
    constexpr int begin = 0, end = STEPS;
    const int warp = threadIdx.x / 32, m = warp / WARPS_N * WARP_M, n_part = warp % WARPS_N * WARP_N;
    float c[ROWS][COLUMNS][4] = {};

#pragma unroll
    for (int s = 0; s < BUFFERS - 1; ++s) {
        if (begin + s < end) load_step(buffers + s * STAGE_CELLS, a, b, m0, n0, begin + s);
        commit_copies();
    }
    int reading = 0, writing = BUFFERS - 1;
    for (int step = begin; step < end; ++step) {
        wait_copies<BUFFERS - 2>();
        __syncthreads();
        if (step + BUFFERS - 1 < end)
            load_step(buffers + writing * STAGE_CELLS, a, b, m0, n0, step + BUFFERS - 1);
        commit_copies();
        const int scale_k = step * DEPTH / SCALE_K;
        const float scale = ldexpf(1.0f, a_exponents[(m0 + m) / SCALE_MN * SCALES_K + scale_k] +
                                             b_exponents[min((n0 + n_part) / SCALE_MN, B_SCALES - 1) * SCALES_K + scale_k]);
        compute(c, buffers + reading * STAGE_CELLS, m, n_part, scale);

        reading = reading + 1 == BUFFERS ? 0 : reading + 1;
        writing = writing + 1 == BUFFERS ? 0 : writing + 1;
    }

    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < ROWS; ++i)
#pragma unroll
        for (int j = 0; j < COLUMNS; ++j)
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                const int row = m0 + m + i * 16 + h * 8 + lane / 4, n = n0 + n_part + j * 8 + lane % 4 * 2;
                if (row >= M || n >= N) continue;
                Result* to = out + (size_t)row * N + n;
                if (N % 2 == 0) {
                    __align__(8) Result pair[2];
                    put(pair, c[i][j][h * 2], 0);
                    put(pair + 1, c[i][j][h * 2 + 1], 0);
                    using Pair = float2;
                    *reinterpret_cast<Pair*>(to) = *reinterpret_cast<const Pair*>(pair);
                } else {
                    put(to, c[i][j][h * 2], 0);
                    if (n + 1 < N) put(to + 1, c[i][j][h * 2 + 1], 0);
                }
            }
}

#endif

constexpr size_t rounded(size_t bytes) { return (bytes + 255) / 256 * 256; }
constexpr size_t A_BYTES = rounded(PLANES * A_PLANE * sizeof(__half)), B_BYTES = rounded(PLANES * B_PLANE * sizeof(__half));
constexpr size_t A_EXPONENTS = rounded((size_t)BATCH * A_SCALES * SCALES_K * sizeof(int));
constexpr size_t B_EXPONENTS = rounded((size_t)BATCH * B_SCALES * SCALES_K * sizeof(int));
constexpr size_t COPIES = A_BYTES + B_BYTES + A_EXPONENTS + B_EXPONENTS;

extern "C" size_t workspace_bytes(void) { return COPIES; }

extern "C" int launch(const float* a, const float* b, float* out, void* workspace, cudaStream_t stream) {
    const int status = (int)cudaFuncSetAttribute(matmul, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED_BYTES);
    if (status) return status;
    unsigned char* memory = static_cast<unsigned char*>(workspace);
    __half* half_a = reinterpret_cast<__half*>(memory);
    __half* half_b = reinterpret_cast<__half*>(memory + A_BYTES);
    int* exponents_a = reinterpret_cast<int*>(memory + A_BYTES + B_BYTES);
    int* exponents_b = reinterpret_cast<int*>(memory + A_BYTES + B_BYTES + A_EXPONENTS);
    convert<A_K_INNER, A_HEIGHT, A_WIDTH, A_ROW, A_SCALES>
        <<<BATCH * A_SCALES * SCALES_K, 256, 0, stream>>>(a, half_a, A_PLANE, exponents_a);
    convert<B_K_INNER, B_HEIGHT, B_WIDTH, B_ROW, B_SCALES>
        <<<BATCH * B_SCALES * SCALES_K, 256, 0, stream>>>(b, half_b, B_PLANE, exponents_b);
    const dim3 grid(BATCH * TILES_M * TILES_N);
    matmul<<<grid, THREADS, SHARED_BYTES, stream>>>(half_a, half_b, exponents_a, exponents_b, out);
    return (int)cudaGetLastError();
}
