// Softmax over the rows of x: one block for each row, an online maximum and sum, two passes.
#define THREADS 1024

__device__ float2 merged(float2 a, float2 b) {  // (maximum, sum of exp(x - maximum))
    float top = fmaxf(a.x, b.x);
    return make_float2(top, a.y * __expf(a.x - top) + b.y * __expf(b.x - top));
}

__global__ void __launch_bounds__(THREADS) softmax(const float* __restrict__ x,
                                                   float* __restrict__ out) {
    __shared__ float2 warps[THREADS / 32];
    const float4* from = reinterpret_cast<const float4*>(x + size_t(blockIdx.x) * X_D1);
    float4* to = reinterpret_cast<float4*>(out + size_t(blockIdx.x) * X_D1);
    float2 mine = make_float2(-INFINITY, 0);
    for (int i = threadIdx.x; i < X_D1 / 4; i += THREADS) {
        float4 v = from[i];
        float top = fmaxf(fmaxf(v.x, v.y), fmaxf(v.z, v.w));
        float sum = expf(v.x - top) + expf(v.y - top) + expf(v.z - top) + expf(v.w - top);
        mine = merged(mine, make_float2(top, sum));
    }
    for (int step = 16; step; step /= 2) {
        float2 other = make_float2(__shfl_xor_sync(~0u, mine.x, step), __shfl_xor_sync(~0u, mine.y, step));
        mine = merged(mine, other);
    }
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = mine;
    __syncthreads();
    mine = warps[threadIdx.x % 32];
    for (int step = 16; step; step /= 2) {
        float2 other = make_float2(__shfl_xor_sync(~0u, mine.x, step), __shfl_xor_sync(~0u, mine.y, step));
        mine = merged(mine, other);
    }
    float scale = 1 / mine.y;
    for (int i = threadIdx.x; i < X_D1 / 4; i += THREADS) {
        float4 v = from[i];
        to[i] = make_float4(expf(v.x - mine.x) * scale, expf(v.y - mine.x) * scale,
                            expf(v.z - mine.x) * scale, expf(v.w - mine.x) * scale);
    }
}

extern "C" int launch(const float* x, float* out, void* workspace, cudaStream_t stream) {
    softmax<<<X_D0, THREADS, 0, stream>>>(x, out);
    return cudaGetLastError();
}
