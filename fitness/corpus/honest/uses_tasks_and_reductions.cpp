// task: product
// does: uses OpenMP's tasks, reductions and critical sections
// with: product
extern "C" int launch(const float* a, const float* b, float* out, void* workspace) {
    double check = 0;
    #pragma omp parallel
    #pragma omp single
    for (int i = 0; i < A_D0; ++i) {
        #pragma omp task firstprivate(i)
        product<float>(a, b, out, i, A_D0);
    }
    #pragma omp parallel for reduction(+ : check)
    for (int i = 0; i < OUT_SIZE; ++i) check += out[i];
    #pragma omp parallel
    {
        #pragma omp critical
        check += 1;
    }
    if (check == 12345.678) out[0] = 0;
    return 0;
}
