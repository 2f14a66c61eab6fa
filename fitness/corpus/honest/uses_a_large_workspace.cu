// task: product
// does: asks for 256 MiB of workspace
// with: product_cuda
extern "C" size_t workspace_bytes(void) { return 256 << 20; }
extern "C" int launch(const float* a, const float* b, float* out, void* workspace,
                      cudaStream_t stream) {
    product_kernel<float><<<A_D0, 64, 0, stream>>>(a, b, (float*)workspace + (60 << 20));
    cudaMemcpyAsync(out, (float*)workspace + (60 << 20), sizeof(float) * OUT_SIZE, cudaMemcpyDeviceToDevice, stream);
    return cudaGetLastError();
}
