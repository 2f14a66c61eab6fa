// task: product
// does: copies an operand into the workspace first
// with: product_cuda
extern "C" size_t workspace_bytes(void) { return sizeof(float) * B_SIZE; }
extern "C" int launch(const float* a, const float* b, float* out, void* workspace,
                      cudaStream_t stream) {
    float* t = (float*)workspace;
    cudaMemcpyAsync(t, b, sizeof(float) * B_SIZE, cudaMemcpyDeviceToDevice, stream);
    product_kernel<float><<<A_D0, 64, 0, stream>>>(a, t, out);
    return cudaGetLastError();
}
