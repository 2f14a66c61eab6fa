// The answer to a prompt; what the prompt gives of building blocks is put before it.
#define STAGES 4  // tune: 3 4

constexpr int SIZE = A_D0, TILE_M = 256, TILE_N = 128, DEPTH = 64, STEPS = SIZE / DEPTH;
constexpr int A_BYTES = TILE_M * DEPTH * 2, B_HALF = DEPTH * 64 * 2, B_BYTES = 2 * B_HALF;
constexpr int STAGE_BYTES = A_BYTES + B_BYTES, SHARED = STAGES * STAGE_BYTES + 1024;

__global__ void __launch_bounds__(384, 1)
matmul(const __grid_constant__ CUtensorMap a_map, const __grid_constant__ CUtensorMap b_map, __half* __restrict__ out) {
    extern __shared__ unsigned char memory[];
    __shared__ uint64_t full[STAGES], empty[STAGES];
    unsigned char* const buffers = memory + (1024 - shared_at(memory) % 1024) % 1024;
    const int group = threadIdx.x / 128;
    const int m0 = blockIdx.x % (SIZE / TILE_M) * TILE_M, n0 = blockIdx.x / (SIZE / TILE_M) * TILE_N;
    if (threadIdx.x == 0) {
        for (int s = 0; s < STAGES; ++s) {
            barrier_init(&full[s], 1);
            barrier_init(&empty[s], 2);
        }
        fence_init();
    }
    __syncthreads();
    if (group == 0) {
        give_registers<40>();
        if (threadIdx.x == 0)
            for (int step = 0; step < STEPS; ++step) {
                const int s = step % STAGES;
                if (step >= STAGES) barrier_wait(&empty[s], (step / STAGES - 1) & 1);
                unsigned char* const a = buffers + s * STAGE_BYTES;
                barrier_expect(&full[s], STAGE_BYTES);
                tile_load(a, &a_map, step * DEPTH, m0, &full[s]);
                tile_load(a + A_BYTES, &b_map, n0, step * DEPTH, &full[s]);
                tile_load(a + A_BYTES + B_HALF, &b_map, n0 + 64, step * DEPTH, &full[s]);
            }
        return;
    }
    take_registers<232>();
    const int half = group - 1;
    float low[64] = {}, high[64] = {};
    for (int step = 0; step < STEPS; ++step) {
        const int s = step % STAGES;
        barrier_wait(&full[s], step / STAGES & 1);
        const unsigned char* const buffer = buffers + s * STAGE_BYTES;
        const uint64_t a = describe(buffer + half * 128 * 128), b = describe(buffer + A_BYTES, B_HALF);
        products_begin();
#pragma unroll
        for (int k = 0; k < DEPTH / 16; ++k) {
            multiply<0, 1>(low, a + 2 * k, b + 128 * k, 1);
            multiply<0, 1>(high, a + 64 * 128 / 16 + 2 * k, b + 128 * k, 1);
        }
        products_commit();
        products_wait<1>();
        if (step > 0 && threadIdx.x % 128 == 0) barrier_arrive(&empty[(step - 1) % STAGES]);
    }
    products_wait<0>();
    const int t = threadIdx.x % 128, row = m0 + half * 128 + t / 32 * 16 + t % 32 / 4, column = n0 + t % 4 * 2;
#pragma unroll
    for (int i = 0; i < 64; i += 2) {
        const size_t at = (size_t)(row + (i & 2) * 4) * SIZE + column + i / 4 * 8;
        *reinterpret_cast<__half2*>(out + at) = __floats2half2_rn(low[i], low[i + 1]);
        *reinterpret_cast<__half2*>(out + at + (size_t)64 * SIZE) = __floats2half2_rn(high[i], high[i + 1]);
    }
}

static int map_of(CUtensorMap* map, const void* matrix, uint32_t rows) {
    const uint64_t dims[] = {SIZE, SIZE}, strides[] = {SIZE * 2};
    const uint32_t box[] = {64, rows}, step[] = {1, 1};
    return kernelevo_tensor_map_tiled(map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, const_cast<void*>(matrix), dims, strides, box, step,
        CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}

extern "C" int launch(const __half* a, const __half* b, __half* out, void* workspace, cudaStream_t stream) {
    CUtensorMap a_map, b_map;
    if (int code = map_of(&a_map, a, 256)) return code;
    if (int code = map_of(&b_map, b, 64)) return code;
    cudaFuncSetAttribute(matmul, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED);
    matmul<<<(SIZE / TILE_M) * (SIZE / TILE_N), 384, SHARED, stream>>>(a_map, b_map, out);
    return cudaGetLastError();
}
