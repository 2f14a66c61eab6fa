// task: layer_norm
// does: normalises rows, in double precision where it counts
__device__ double total(double v) {
    __shared__ double part[8];
    for (int o = 16; o; o >>= 1) v += __shfl_xor_sync(~0u, v, o);
    __syncthreads();
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
    __syncthreads();
    v = 0;
    for (int w = 0; w < 8; ++w) v += part[w];
    return v;
}
__global__ void norm(const float* x, const float* weight, const float* bias, float* out) {
    x += size_t(blockIdx.x) * X_D1, out += size_t(blockIdx.x) * X_D1;
    double sum = 0, square = 0;
    for (int c = threadIdx.x; c < X_D1; c += 256) sum += x[c];
    const double mean = total(sum) / X_D1;
    for (int c = threadIdx.x; c < X_D1; c += 256) square += (x[c] - mean) * (x[c] - mean);
    const double scale = 1 / sqrt(total(square) / X_D1 + 1e-5);
    for (int c = threadIdx.x; c < X_D1; c += 256)
        out[c] = (float)((x[c] - mean) * scale * weight[c] + bias[c]);
}
extern "C" int launch(const float* x, const float* norm_weight, const float* norm_bias, float* out,
                      void* workspace, cudaStream_t stream) {
    norm<<<X_D0, 256, 0, stream>>>(x, norm_weight, norm_bias, out);
    return cudaGetLastError();
}
