// task: product
// does: gives the caches hints for its loads and stores
__global__ void hinted(const float* a, const float* b, float* out) {
    const int i = blockIdx.x, j = threadIdx.x;
    if (j >= B_D1) return;
    unsigned long long keep;
    asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(keep));
    double sum = 0;
    for (int k = 0; k < A_D1; ++k) {
        float right;
        asm volatile("ld.global.L2::cache_hint.f32 %0, [%1], %2;" : "=f"(right) : "l"(b + k * B_D1 + j), "l"(keep));
        sum += (double)__ldcs(a + i * A_D1 + k) * (double)right;
    }
    __stcs(out + i * B_D1 + j, (float)sum);
}
extern "C" int launch(const float* a, const float* b, float* out, void* workspace,
                      cudaStream_t stream) {
    hinted<<<A_D0, 64, 0, stream>>>(a, b, out);
    return cudaGetLastError();
}
