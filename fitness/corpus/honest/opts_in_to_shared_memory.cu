// task: product
// does: uses more shared memory than comes without asking
__global__ void staged(const float* a, const float* b, float* out) {
    extern __shared__ float pool[];
    float* tile = pool + (64 << 8);  // past the first 64 KiB
    for (int i = threadIdx.x; i < B_SIZE; i += 64) tile[i] = b[i];
    __syncthreads();
    const int i = blockIdx.x, j = threadIdx.x;
    if (j >= B_D1) return;
    double sum = 0;
    for (int k = 0; k < A_D1; ++k) sum += (double)a[i * A_D1 + k] * (double)tile[k * B_D1 + j];
    out[i * B_D1 + j] = (float)sum;
}
extern "C" int launch(const float* a, const float* b, float* out, void* workspace,
                      cudaStream_t stream) {
    cudaFuncSetAttribute(staged, cudaFuncAttributeMaxDynamicSharedMemorySize, 96 << 10);
    staged<<<A_D0, 64, 96 << 10, stream>>>(a, b, out);
    return cudaGetLastError();
}
