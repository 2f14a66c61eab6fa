// task: product
// does: forks a stream and joins it again
// with: product_cuda
extern "C" int launch(const float* a, const float* b, float* out, void* workspace,
                      cudaStream_t stream) {
    cudaStream_t side;
    cudaEvent_t forked, joined;
    cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking);
    cudaEventCreateWithFlags(&forked, cudaEventDisableTiming);
    cudaEventCreateWithFlags(&joined, cudaEventDisableTiming);
    cudaEventRecord(forked, stream);
    cudaStreamWaitEvent(side, forked, 0);
    product_kernel<float><<<A_D0 / 2, 64, 0, side>>>(a, b, out);
    product_kernel<float><<<A_D0 / 2, 64, 0, stream>>>(a + A_D0 / 2 * A_D1, b, out + A_D0 / 2 * B_D1);
    cudaEventRecord(joined, side);
    cudaStreamWaitEvent(stream, joined, 0);
    return cudaGetLastError();
}
