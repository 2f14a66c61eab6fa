// C = A B in float32, one row of C at a time.
extern "C" int launch(const float* a, const float* b, float* out, void* workspace) {
    (void)workspace;
#pragma omp parallel for
    for (long row = 0; row < A_D0; ++row) {
        float* to = out + row * B_D1;
        for (long j = 0; j < B_D1; ++j) to[j] = 0;
        for (long k = 0; k < A_D1; ++k) {
            const float mine = a[row * A_D1 + k];
            const float* from = b + k * B_D1;
#pragma omp simd
            for (long j = 0; j < B_D1; ++j) to[j] += mine * from[j];
        }
    }
    return 0;
}
