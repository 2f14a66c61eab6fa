// task: product
// does: uses AVX2, FMA, prefetches and non-temporal stores where the processor has them
// with: product
#include <immintrin.h>
extern "C" int launch(const float* a, const float* b, float* out, void* workspace) {
    #ifdef __AVX2__
    for (int i = 0; i < A_D0; ++i)
        for (int j = 0; j < B_D1; j += 8) {
            __m256 sum = _mm256_setzero_ps();
            for (int k = 0; k < A_D1; ++k) {
                _mm_prefetch((const char*)(b + (k + 1) % A_D1 * B_D1 + j), _MM_HINT_T0);
                sum = _mm256_fmadd_ps(_mm256_set1_ps(a[i * A_D1 + k]), _mm256_loadu_ps(b + k * B_D1 + j), sum);
            }
            _mm256_stream_ps(out + i * B_D1 + j, sum);
        }
    _mm_sfence();
    #else
    product<float>(a, b, out);
    #endif
    return 0;
}
