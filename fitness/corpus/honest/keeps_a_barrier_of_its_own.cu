// task: product
// does: keeps the state of a barrier between calls, and nothing else
extern "C" size_t workspace_bytes(void) { return sizeof(float) * OUT_SIZE; }
__device__ unsigned arrived;  // goes up by 24 in each call
__global__ void met(const float* a, const float* b, float* out, float* t) {
    for (int i = blockIdx.x; i < A_D0; i += 24)
        for (int j = threadIdx.x; j < B_D1; j += 64) {
            double sum = 0;
            for (int k = 0; k < A_D1; ++k) sum += (double)a[i * A_D1 + k] * (double)b[k * B_D1 + j];
            t[i * B_D1 + j] = (float)sum;
        }
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        const unsigned ticket = atomicAdd(&arrived, 1);
        const unsigned target = (ticket / 24 + 1) * 24;
        while (int(*(volatile unsigned*)&arrived - target) < 0) {}
        __threadfence();
    }
    __syncthreads();
    for (int i = 23 - blockIdx.x; i < A_D0; i += 24)
        for (int j = threadIdx.x; j < B_D1; j += 64) out[i * B_D1 + j] = __ldcg(&t[i * B_D1 + j]);
}
extern "C" int launch(const float* a, const float* b, float* out, void* workspace,
                      cudaStream_t stream) {
    met<<<24, 64, 0, stream>>>(a, b, out, (float*)workspace);
    return cudaGetLastError();
}
