// task: product
// does: forks into three streams by one event and joins them by three
__global__ void part(const float* a, const float* b, float* out, int first, int step) {
    const int i = first + step * blockIdx.x, j = threadIdx.x;
    if (i >= A_D0 || j >= B_D1) return;
    double sum = 0;
    for (int k = 0; k < A_D1; ++k) sum += (double)a[i * A_D1 + k] * (double)b[k * B_D1 + j];
    out[i * B_D1 + j] = (float)sum;
}
extern "C" int launch(const float* a, const float* b, float* out, void* workspace,
                      cudaStream_t stream) {
    constexpr int SIDES = 3;
    static cudaStream_t sides[SIDES];
    static cudaEvent_t begun, done[SIDES];
    if (!begun) {
        cudaEventCreateWithFlags(&begun, cudaEventDisableTiming);
        for (int side = 0; side < SIDES; ++side) {
            cudaStreamCreateWithFlags(&sides[side], cudaStreamNonBlocking);
            cudaEventCreateWithFlags(&done[side], cudaEventDisableTiming);
        }
    }
    cudaEventRecord(begun, stream);
    for (int side = 0; side < SIDES; ++side) {
        cudaStreamWaitEvent(sides[side], begun, 0);
        part<<<(A_D0 + SIDES) / (SIDES + 1), 64, 0, sides[side]>>>(a, b, out, side, SIDES + 1);
        cudaEventRecord(done[side], sides[side]);
    }
    part<<<(A_D0 + SIDES) / (SIDES + 1), 64, 0, stream>>>(a, b, out, SIDES, SIDES + 1);
    for (int side = 0; side < SIDES; ++side) cudaStreamWaitEvent(stream, done[side], 0);
    return cudaGetLastError();
}
