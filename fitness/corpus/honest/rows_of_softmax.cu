// task: softmax
// does: reduces each row in a block, in single precision
template <class Body>
__device__ float over_block(float mine, Body merged) {
    __shared__ float part[8];
    for (int step = 16; step; step /= 2) mine = merged(mine, __shfl_xor_sync(~0u, mine, step));
    __syncthreads();
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = mine;
    __syncthreads();
    mine = part[0];
    for (int w = 1; w < 8; ++w) mine = merged(mine, part[w]);
    return mine;
}
__global__ void softmax(const float* x, float* out) {
    x += size_t(blockIdx.x) * X_D1, out += size_t(blockIdx.x) * X_D1;
    float top = -INFINITY, sum = 0;
    for (int c = threadIdx.x; c < X_D1; c += 256) top = fmaxf(top, x[c]);
    top = over_block(top, [](float l, float r) { return fmaxf(l, r); });
    for (int c = threadIdx.x; c < X_D1; c += 256) sum += expf(x[c] - top);
    sum = over_block(sum, [](float l, float r) { return l + r; });
    for (int c = threadIdx.x; c < X_D1; c += 256) out[c] = expf(x[c] - top) / (sum);
}
extern "C" int launch(const float* x, float* out, void* workspace, cudaStream_t stream) {
    softmax<<<X_D0, 256, 0, stream>>>(x, out);
    return cudaGetLastError();
}
