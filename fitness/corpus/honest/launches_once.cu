// task: product
// does: launches one kernel
// with: product_cuda
extern "C" int launch(const float* a, const float* b, float* out, void* workspace,
                      cudaStream_t stream) {
    product_kernel<float><<<A_D0, 64, 0, stream>>>(a, b, out);
    return cudaGetLastError();
}
