// C = A B in float32: tiles of 128 x 128 in shared memory, 8 x 8 results for each thread.
#define TILE 128
#define DEEP 16
#define EACH 8

__global__ void __launch_bounds__(256) product(const float* __restrict__ a,
                                               const float* __restrict__ b,
                                               float* __restrict__ out) {
    __shared__ float left[DEEP][TILE], right[DEEP][TILE];
    const int row = threadIdx.x / 16, column = threadIdx.x % 16;
    const float* from_a = a + size_t(blockIdx.y) * TILE * A_D1;
    const float* from_b = b + size_t(blockIdx.x) * TILE;
    float sums[EACH][EACH] = {};
    for (int k = 0; k < A_D1; k += DEEP) {
        for (int i = threadIdx.x; i < TILE * DEEP; i += 256) {
            left[i % DEEP][i / DEEP] = from_a[size_t(i / DEEP) * A_D1 + k + i % DEEP];
            right[i / TILE][i % TILE] = from_b[size_t(k + i / TILE) * B_D1 + i % TILE];
        }
        __syncthreads();
#pragma unroll
        for (int d = 0; d < DEEP; ++d) {
            float mine[EACH];
#pragma unroll
            for (int i = 0; i < EACH; ++i) mine[i] = left[d][row + 16 * i];
#pragma unroll
            for (int j = 0; j < EACH; ++j) {
                const float other = right[d][column + 16 * j];
#pragma unroll
                for (int i = 0; i < EACH; ++i) sums[i][j] += mine[i] * other;
            }
        }
        __syncthreads();
    }
    float* to = out + (size_t(blockIdx.y) * TILE + row) * B_D1 + size_t(blockIdx.x) * TILE + column;
    for (int i = 0; i < EACH; ++i)
        for (int j = 0; j < EACH; ++j) to[size_t(16 * i) * B_D1 + 16 * j] = sums[i][j];
}

extern "C" int launch(const float* a, const float* b, float* out, void* workspace,
                      cudaStream_t stream) {
    (void)workspace;
    product<<<dim3(B_D1 / TILE, A_D0 / TILE), 256, 0, stream>>>(a, b, out);
    return cudaGetLastError();
}
