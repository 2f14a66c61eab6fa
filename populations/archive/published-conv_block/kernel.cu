// catalogue: conv_block shared_patch packed_weights split_half occupancy #7b3983b2
constexpr int IMAGES = 100, CHANNELS = 3, HEIGHT = 224, WIDTH = 224, FILTERS = 96;
constexpr int KH = 11, KW = 11, SH = 4, SW = 4, PH = 2, PW = 2;
constexpr int POOL_H = 3, POOL_W = 3, POOL_SH = 2, POOL_SW = 2;
constexpr int POOLED_H = 27, POOLED_W = 27;

__device__ __forceinline__ float to_float(float x) { return x; }
__device__ __forceinline__ void store(float* to, float x) { *to = x; }

// Shared memory one block may use on the chip this is compiled for, in bytes.
constexpr int shared_limit() {
    constexpr int archs[] = {__CUDA_ARCH_LIST__};
    return archs[0] == 800 || archs[0] == 870 ? 163 * 1024
         : archs[0] == 900 || archs[0] == 1000 || archs[0] == 1030 ? 227 * 1024
                                                                  : 99 * 1024;
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

// Rows of pooled outputs per block: more share more of the convolution, and need more memory.
#define POOL_ROWS 2  // tune: 1 2 3 4
// Shared memory for the input's patch, in KB; channels that do not fit wait for their turn.
#define PATCH_KB 96  // tune: 32 64 96 160
// 16-row fragments and filters of a warp, and warps side by side along the filters.
#define WARP_ROWS 3  // tune: 1 2 3 4
#define WARP_FILTERS 48  // tune: 16 32 48 64
#define WARPS_F 2  // tune: 1 2 3
// Weights per filter in shared memory at a time.
#define TILE_K 80  // tune: 16 32 48 64 80
#define MIN_BLOCKS 3  // tune: 2 3

constexpr int up(int x, int unit) { return (x + unit - 1) / unit * unit; }
constexpr int least(int a, int b) { return a < b ? a : b; }
constexpr int most_of(int a, int b) { return a > b ? a : b; }

// The taps of a row of the filter, filled up with zero weights to whole groups.
constexpr int GROUP = 4, ROW_TAPS = up(KW, GROUP);
// A block's tile: pooled outputs, and the outputs of the convolution below them.
constexpr int WIDEST = most_of(1, (64 - POOL_W) / POOL_SW + 1), COL_TILES = (POOLED_W + WIDEST - 1) / WIDEST;
constexpr int POOLED_TW = (POOLED_W + COL_TILES - 1) / COL_TILES, TW = (POOLED_TW - 1) * POOL_SW + POOL_W;
using Cell = __half;
constexpr int PLANES = 2, TILE_F = WARP_FILTERS * WARPS_F;
constexpr int PATCH_W = up((TW - 1) * SW + ROW_TAPS, 4);
constexpr int patch_rows(int rows) { return (rows - 1) * SH + KH; }
constexpr int channel_bytes(int rows) { return patch_rows(rows) * PATCH_W * PLANES * (int)sizeof(Cell) + KH * ROW_TAPS / GROUP * 4; }
// Finished outputs of some filters, position after position, on their way out.
constexpr int STAGED_F = 16 * WARPS_F;
constexpr int staged_pitch(int rows) { return up(rows * TW, 16) + 4; }
constexpr bool too_large(int rows, int budget) {
    return channel_bytes(rows) > budget || STAGED_F * staged_pitch(rows) * 4 > shared_limit() - 2048;
}
constexpr int PAD = 16 / sizeof(Cell);
constexpr int weight_bytes(int depth) { return PLANES * TILE_F * (depth + PAD) * (int)sizeof(Cell); }
constexpr int WEIGHT_BUDGET = most_of(shared_limit() / 3, 2 * weight_bytes(16));
constexpr int PATCH_BUDGET = least(PATCH_KB * 1024, shared_limit() - WEIGHT_BUDGET - 3072);
constexpr int tile_rows(int pooled) { return (pooled - 1) * POOL_SH + POOL_H; }
constexpr int fitting(int pooled) { return pooled > 1 && too_large(tile_rows(pooled), PATCH_BUDGET) ? fitting(pooled - 1) : pooled; }
constexpr int POOLED_TH = fitting(least(POOL_ROWS, POOLED_H)), TH = tile_rows(POOLED_TH);
constexpr int ROW_TILES = (POOLED_H + POOLED_TH - 1) / POOLED_TH;
constexpr int POSITIONS = TH * TW, PATCH_H = patch_rows(TH);
constexpr int CHANNELS_AT_ONCE = least(CHANNELS, most_of(1, PATCH_BUDGET / channel_bytes(TH)));
constexpr int PASSES = (CHANNELS + CHANNELS_AT_ONCE - 1) / CHANNELS_AT_ONCE;
constexpr int PLANE = up(CHANNELS_AT_ONCE * PATCH_H * PATCH_W, 8);
constexpr int TAPS = CHANNELS_AT_ONCE * KH * ROW_TAPS, TABLE = up(TAPS / GROUP + 64 / GROUP + 20, 4);
constexpr int FRAGMENTS = (POSITIONS + 15) / 16;
constexpr int ROWS = most_of(WARP_ROWS, (FRAGMENTS + 16 / WARPS_F - 1) / (16 / WARPS_F)), COLUMNS = WARP_FILTERS / 8;
constexpr int WARPS_P = (FRAGMENTS + ROWS - 1) / ROWS, THREADS = 32 * WARPS_P * WARPS_F;
constexpr int FILTER_TILES = (FILTERS + TILE_F - 1) / TILE_F;
constexpr int DEPTH = weight_bytes(TILE_K) <= WEIGHT_BUDGET ? TILE_K : 16;
constexpr int BUFFERS = 1;
constexpr int STEPS = (TAPS + DEPTH - 1) / DEPTH, PACKED_K = PASSES * STEPS * DEPTH, PACKED_F = FILTER_TILES * TILE_F;
constexpr int PITCH = DEPTH + PAD, WEIGHT_PLANE = TILE_F * PITCH, BUFFER = PLANES * WEIGHT_PLANE;
constexpr int WORK_BYTES = TABLE * 4 + (PLANES * PLANE + BUFFERS * BUFFER) * (int)sizeof(Cell);
constexpr int STAGED_PITCH = staged_pitch(TH);
constexpr int SHARED_BYTES = most_of(WORK_BYTES, STAGED_F * STAGED_PITCH * 4);
static_assert(SHARED_BYTES <= shared_limit() - 1024, "the tile does not fit into shared memory");

// Rewrites the weights in the order in which blocks want them: filter by filter, zeros between.
__global__ void __launch_bounds__(128)
pack(const float* __restrict__ weight, Cell* __restrict__ to, float* __restrict__ scales) {
    constexpr int K = CHANNELS * KH * KW;
    const int filter = blockIdx.x;
    weight += (size_t)filter * K;
    // A power of two brings the largest weight to [2^14, 2^15), where halves have all their bits.
    __shared__ float largest[4];
    float most = 0.0f;
    for (int k = threadIdx.x; filter < FILTERS && k < K; k += 128) most = fmaxf(most, fabsf(to_float(weight[k])));
    for (int distance = 16; distance; distance /= 2) most = fmaxf(most, __shfl_xor_sync(~0u, most, distance));
    if (threadIdx.x % 32 == 0) largest[threadIdx.x / 32] = most;
    __syncthreads();
    most = fmaxf(fmaxf(largest[0], largest[1]), fmaxf(largest[2], largest[3]));
    const int exponent = most > 0.0f ? max(ilogbf(most), -100) - 14 : 0;
    const float scale = ldexpf(1.0f, -exponent);
    if (threadIdx.x == 0) scales[filter] = ldexpf(1.0f, exponent);
    for (int k = threadIdx.x; k < PACKED_K; k += 128) {
        const int tap = k % (STEPS * DEPTH), c = k / (STEPS * DEPTH) * CHANNELS_AT_ONCE + tap / (KH * ROW_TAPS);
        const int i = tap / ROW_TAPS % KH, j = tap % ROW_TAPS;
        const bool real = filter < FILTERS && tap < TAPS && c < CHANNELS && j < KW;
        const float value = real ? to_float(weight[(c * KH + i) * KW + j]) * scale : 0.0f;
        const __half high = __float2half_rn(value);
        to[(size_t)filter * PACKED_K + k] = high;
        to[(size_t)(PACKED_F + filter) * PACKED_K + k] = __float2half_rn(value - __half2float(high));
    }
}

// Copies the weights of one step to shared memory.
__device__ __forceinline__ void load_weights(Cell* buffer, const Cell* packed, int filter0, int step) {
    constexpr int VECTOR = 16 / sizeof(Cell);
    constexpr int LANES = DEPTH / VECTOR, ALL = PLANES * TILE_F * LANES;
    for (int i = threadIdx.x; i < ALL; i += THREADS) {
        const int row = i / LANES, col = i % LANES * VECTOR;
        const Cell* from = packed + ((size_t)(row / TILE_F) * PACKED_F + filter0 + row % TILE_F) * PACKED_K + step * DEPTH + col;
        Cell* to = buffer + row * PITCH + col;
        *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(from);
    }
}

// Calls f(cell, value) for every cell of the patch, zeros where it overhangs the image.
template <class F>
__device__ __forceinline__ void visit_patch(const float* __restrict__ image, int channels, int h0, int w0, F f) {
#pragma unroll 4
    for (int i = threadIdx.x; i < channels * PATCH_H * PATCH_W; i += THREADS) {
        const int row = i / PATCH_W, h = h0 + row % PATCH_H, w = w0 + i % PATCH_W;
        const bool inside = h >= 0 && h < HEIGHT && w >= 0 && w < WIDTH;
        f(i, inside ? to_float(image[(size_t)(row / PATCH_H * HEIGHT + h) * WIDTH + w]) : 0.0f);
    }
}

// Fills the patch with half high and low parts under a power-of-two scale; returns its inverse.
__device__ __forceinline__ float load_patch(Cell* patch, const float* image, int channels, int h0, int w0) {
    __shared__ float largest[32];
    float most = 0.0f;
    visit_patch(image, channels, h0, w0, [&](int, float x) { most = fmaxf(most, fabsf(x)); });
    for (int distance = 16; distance; distance /= 2) most = fmaxf(most, __shfl_xor_sync(~0u, most, distance));
    if (threadIdx.x % 32 == 0) largest[threadIdx.x / 32] = most;
    __syncthreads();
    for (int i = 0; i < THREADS / 32; ++i) most = fmaxf(most, largest[i]);
    const int exponent = most > 0.0f ? max(ilogbf(most), -100) - 14 : 0;
    const float scale = ldexpf(1.0f, -exponent);
    visit_patch(image, channels, h0, w0, [&](int cell, float x) {
        x *= scale;
        const __half high = __float2half_rn(x);
        patch[cell] = high;
        patch[PLANE + cell] = __float2half_rn(x - __half2float(high));
    });
    return ldexpf(1.0f, exponent);
}

// Two taps that follow each other, as the tensor cores take them.
__device__ __forceinline__ uint32_t two_taps(const __half* from) {
    if constexpr (SW % 2 == 0) {
        return *reinterpret_cast<const uint32_t*>(from);
    } else {
        const uint32_t low = *reinterpret_cast<const unsigned short*>(from);
        return low | (uint32_t)*reinterpret_cast<const unsigned short*>(from + 1) << 16;
    }
}

// The fragments of one step of 16 taps; `start` holds where each lane's outputs begin in the patch.
__device__ __forceinline__ void load_a(uint32_t (&f)[ROWS][4], const __half* patch, const int (&start)[ROWS][2], const int* table) {
    const int t = threadIdx.x % 4;
    const int first = table[t / 2] + t % 2 * 2, second = table[2 + t / 2] + t % 2 * 2;
#pragma unroll
    for (int i = 0; i < ROWS; ++i) {
        f[i][0] = two_taps(patch + start[i][0] + first);
        f[i][1] = two_taps(patch + start[i][1] + first);
        f[i][2] = two_taps(patch + start[i][0] + second);
        f[i][3] = two_taps(patch + start[i][1] + second);
    }
}

// Adds the products of one step's weights to c.
__device__ __forceinline__ void compute(float (&c)[ROWS][COLUMNS][4], const Cell* patch, const int (&start)[ROWS][2], const int* table, const Cell* weights, float scale) {
    const int lane = threadIdx.x % 32;
#pragma unroll 1
    for (int k = 0; k < DEPTH; k += 16) {
        uint32_t a[ROWS][4];
        load_a(a, patch, start, table + k / 4);
        uint32_t rest_a[ROWS][4];
        load_a(rest_a, patch + PLANE, start, table + k / 4);
#pragma unroll
        for (int j = 0; j < COLUMNS; j += 2) {
            uint32_t b[4];
            const Cell* from = weights + (j * 8 + lane % 8 + lane / 16 * 8) * PITCH + k + lane / 8 % 2 * 8;
            load_matrices(b, from);
            uint32_t rest_b[4];
            load_matrices(rest_b, from + WEIGHT_PLANE);
#pragma unroll
            for (int jj = 0; jj < 2; ++jj) {
                // Tensor cores cut sums off rather than round them: only short ones are left to
                // them, the small products first.
                float part[ROWS][4] = {};
#pragma unroll
                for (int i = 0; i < ROWS; ++i) mma_half(part[i], rest_a[i], b[jj * 2], b[jj * 2 + 1]);
#pragma unroll
                for (int i = 0; i < ROWS; ++i) mma_half(part[i], a[i], rest_b[jj * 2], rest_b[jj * 2 + 1]);
#pragma unroll
                for (int i = 0; i < ROWS; ++i) mma_half(part[i], a[i], b[jj * 2], b[jj * 2 + 1]);
#pragma unroll
                for (int i = 0; i < ROWS; ++i)
#pragma unroll
                    for (int q = 0; q < 4; ++q) c[i][j + jj][q] = fmaf(part[i][q], scale, c[i][j + jj][q]);
            }
        }
    }
}

// Writes what is staged: `count` filters, of which `first + f * STRIDE` lies in row f.
template <int STRIDE>
__device__ __forceinline__ void write_staged(const float* staged, float* __restrict__ out, int first, int count, int row0, int col0) {
    constexpr int ALL = POOLED_TH * POOLED_TW;
    for (int i = threadIdx.x; i < count * ALL; i += THREADS) {
        const int f = i / ALL, r = i % ALL / POOLED_TW, c = i % POOLED_TW;
        if (first + f * STRIDE >= FILTERS || row0 + r >= POOLED_H || col0 + c >= POOLED_W) continue;
        const float* from = staged + f * STAGED_PITCH + r * POOL_SH * TW + c * POOL_SW;
        float most = from[0];
#pragma unroll
        for (int i = 0; i < POOL_H; ++i)
#pragma unroll
            for (int j = 0; j < POOL_W; ++j) most = fmaxf(most, from[i * TW + j]);
        store(out + ((size_t)(first + f * STRIDE) * POOLED_H + row0 + r) * POOLED_W + col0 + c, most);
    }
}

__global__ void __launch_bounds__(THREADS, (MIN_BLOCKS * (SHARED_BYTES + 1024) <= shared_limit() && MIN_BLOCKS * THREADS <= 1024 ? MIN_BLOCKS : 1))
conv(const float* __restrict__ x, const Cell* __restrict__ weight, const float* __restrict__ scales, const float* __restrict__ bias, float* __restrict__ out) {
    extern __shared__ __align__(16) unsigned char memory[];
    int* table = reinterpret_cast<int*>(memory);
    Cell* patch = reinterpret_cast<Cell*>(memory + TABLE * 4);
    int tile = blockIdx.x;
    const int filter_tile = tile % FILTER_TILES;
    tile /= FILTER_TILES;
    const int col_tile = tile % COL_TILES, row_tile = tile / COL_TILES % ROW_TILES;
    const size_t image = tile / (COL_TILES * ROW_TILES);
    const int out_row = row_tile * POOLED_TH, out_col = col_tile * POOLED_TW;
    const int row0 = out_row * POOL_SH, col0 = out_col * POOL_SW;
    out += image * FILTERS * POOLED_H * POOLED_W;
    x += image * CHANNELS * HEIGHT * WIDTH;
    // Where each group of taps lies in the patch; groups of zero weights point to its beginning.
    for (int q = threadIdx.x; q < TABLE; q += THREADS) {
        const int tap = q * GROUP, c = tap / (KH * ROW_TAPS);
        table[q] = tap < TAPS ? (c * PATCH_H + tap / ROW_TAPS % KH) * PATCH_W + tap % ROW_TAPS : 0;
    }
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int position0 = warp / WARPS_F * ROWS * 16 + lane / 4, filter_part = warp % WARPS_F * WARP_FILTERS;
    int start[ROWS][2];
#pragma unroll
    for (int i = 0; i < ROWS; ++i)
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            const int p = min(position0 + i * 16 + h * 8, POSITIONS - 1);
            start[i][h] = p / TW * SH * PATCH_W + p % TW * SW;
        }
    float c[ROWS][COLUMNS][4] = {};
    const int h0 = row0 * SH - PH, w0 = col0 * SW - PW;

    Cell* buffers = patch + PLANES * PLANE;
    for (int pass = 0; pass < PASSES; ++pass) {
        const int channel0 = pass * CHANNELS_AT_ONCE, channels = min(CHANNELS_AT_ONCE, CHANNELS - channel0);
        if (PASSES > 1) {
            __syncthreads();
            // Channels that the last pass lacks have zero weights, but must be finite.
            if (channels < CHANNELS_AT_ONCE)
                for (int i = threadIdx.x; i < PLANES * PLANE; i += THREADS) patch[i] = Cell(0.0f);
            __syncthreads();
        }
const float scale = load_patch(patch, x + (size_t)channel0 * HEIGHT * WIDTH, channels, h0, w0);
        for (int step = 0; step < STEPS; ++step) {
            __syncthreads();
            load_weights(buffers, weight, filter_tile * TILE_F, pass * STEPS + step);
            __syncthreads();
            const Cell* weights = buffers;
            compute(c, patch, start, table + step * DEPTH / GROUP, weights + filter_part * PITCH, scale);
        }
    }

    float* staged = reinterpret_cast<float*>(memory);
    // Sixteen filters of every warp at a time.
#pragma unroll
    for (int j = 0; j < COLUMNS; j += 2) {
        __syncthreads();
#pragma unroll
        for (int i = 0; i < ROWS; ++i)
#pragma unroll
            for (int q = 0; q < 8; ++q) {
                const int p = position0 + i * 16 + q / 2 % 2 * 8, f = q / 4 * 8 + lane % 4 * 2 + q % 2;
                const int filter = filter_tile * TILE_F + filter_part + j * 8 + f;
                if (p >= POSITIONS) continue;
                staged[(warp % WARPS_F * 16 + f) * STAGED_PITCH + p] = fmaxf(c[i][j + q / 4][q % 4] * scales[min(filter, PACKED_F - 1)] + to_float(bias[min(filter, FILTERS - 1)]), 0.0f);
            }
        __syncthreads();
        for (int part = 0; part < WARPS_F; ++part)
            write_staged<1>(staged + part * 16 * STAGED_PITCH, out, filter_tile * TILE_F + part * WARP_FILTERS + j * 8, 16, out_row, out_col);
    }
}

constexpr size_t PACKED_BYTES = (size_t)up(PLANES * PACKED_F * (int)sizeof(Cell), 256) * PACKED_K;

extern "C" size_t workspace_bytes(void) { return PACKED_BYTES + PACKED_F * sizeof(float); }

extern "C" int launch(const float* x, const float* conv_weight, const float* conv_bias, float* out, void* workspace, cudaStream_t stream) {
    const int status = (int)cudaFuncSetAttribute(conv, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED_BYTES);
    if (status) return status;
    Cell* packed = static_cast<Cell*>(workspace);
    float* scales = reinterpret_cast<float*>(static_cast<unsigned char*>(workspace) + PACKED_BYTES);
    pack<<<PACKED_F, 128, 0, stream>>>(conv_weight, packed, scales);
    conv<<<(unsigned)(IMAGES * ROW_TILES * COL_TILES * FILTER_TILES), THREADS, SHARED_BYTES, stream>>>(x, packed, scales, conv_bias, out);
    return (int)cudaGetLastError();
}
