// task: product
// does: lets a kernel begin before the one before it has ended
// needs: sm_90
extern "C" size_t workspace_bytes(void) { return sizeof(float) * OUT_SIZE; }
__global__ void first(const float* a, const float* b, float* t) {
    const int i = blockIdx.x, j = threadIdx.x;
    double sum = 0;
    for (int k = 0; k < A_D1 && j < B_D1; ++k) sum += (double)a[i * A_D1 + k] * (double)b[k * B_D1 + j];
    if (j < B_D1) t[i * B_D1 + j] = (float)sum;
#if __CUDA_ARCH__ >= 900
    cudaTriggerProgrammaticLaunchCompletion();
#endif
}
__global__ void second(const float* t, float* out) {
#if __CUDA_ARCH__ >= 900
    cudaGridDependencySynchronize();
#endif
    if (threadIdx.x < B_D1) out[blockIdx.x * B_D1 + threadIdx.x] = __ldcg(&t[blockIdx.x * B_D1 + threadIdx.x]);
}
extern "C" int launch(const float* a, const float* b, float* out, void* workspace,
                      cudaStream_t stream) {
    cudaLaunchAttribute early = {};
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t how = {};
    how.gridDim = A_D0, how.blockDim = 64, how.stream = stream, how.attrs = &early, how.numAttrs = 1;
    first<<<A_D0, 64, 0, stream>>>(a, b, (float*)workspace);
    return cudaLaunchKernelEx(&how, second, (const float*)workspace, out);
    return cudaGetLastError();
}
