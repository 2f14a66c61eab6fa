// task: product
// does: sets the processor's mode for denormal numbers, and puts it back
// with: product
#include <immintrin.h>
extern "C" int launch(const float* a, const float* b, float* out, void* workspace) {
    const unsigned before = _mm_getcsr();
    _mm_setcsr(before | 0x8040);
    product<float>(a, b, out);
    _mm_setcsr(before);
    return 0;
}
