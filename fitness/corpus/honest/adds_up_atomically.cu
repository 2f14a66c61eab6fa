// task: product
// does: adds parts up in an order that differs from call to call
__global__ void parts(const float* a, const float* b, float* out) {
    const int i = blockIdx.x, j = threadIdx.x;
    if (j >= B_D1) return;
    double sum = 0;
    for (int k = blockIdx.y * (A_D1 / 4); k < (blockIdx.y + 1) * (A_D1 / 4); ++k)
        sum += (double)a[i * A_D1 + k] * (double)b[k * B_D1 + j];
    atomicAdd(&out[i * B_D1 + j], (float)sum);
}
extern "C" int launch(const float* a, const float* b, float* out, void* workspace,
                      cudaStream_t stream) {
    cudaMemsetAsync(out, 0, sizeof(float) * OUT_SIZE, stream);
    parts<<<dim3(A_D0, 4), 64, 0, stream>>>(a, b, out);
    return cudaGetLastError();
}
