// task: product
// does: has all blocks meet in a cooperative launch
#include <cooperative_groups.h>
extern "C" size_t workspace_bytes(void) { return sizeof(float) * OUT_SIZE; }
__global__ void met(const float* a, const float* b, float* out, void* workspace) {
    const int i = blockIdx.x, j = threadIdx.x;
    float* t = (float*)workspace;
    if (j < B_D1) {
        double sum = 0;
        for (int k = 0; k < A_D1; ++k) sum += (double)a[i * A_D1 + k] * (double)b[k * B_D1 + j];
        t[i * B_D1 + j] = (float)sum;
    }
    cooperative_groups::this_grid().sync();
    if (j < B_D1) out[(A_D0 - 1 - i) * B_D1 + j] = t[(A_D0 - 1 - i) * B_D1 + j];
}
extern "C" int launch(const float* a, const float* b, float* out, void* workspace,
                      cudaStream_t stream) {
    void* arguments[] = {&a, &b, &out, &workspace};
    return cudaLaunchCooperativeKernel((const void*)met, dim3(A_D0), dim3(64), arguments, 0, stream);
    return cudaGetLastError();
}
