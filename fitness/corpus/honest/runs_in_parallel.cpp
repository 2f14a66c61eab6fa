// task: product
// does: shares the rows among OpenMP's threads
// with: product
extern "C" int launch(const float* a, const float* b, float* out, void* workspace) {
    #pragma omp parallel for schedule(dynamic, 3)
    for (int i = 0; i < A_D0; ++i) product<float>(a, b, out, i, A_D0);
    return 0;
}
