// task: product
// does: fills a table that depends on nothing at its first call
// with: product
#include <math.h>
static double table[256];
static bool ready;
extern "C" int launch(const float* a, const float* b, float* out, void* workspace) {
    if (!ready) {
        for (int i = 0; i < 256; ++i) table[i] = cos(i * 0.0);
        ready = true;
    }
    product<float>(a, b, out);
    for (int i = 0; i < OUT_SIZE; ++i) out[i] *= (float)table[i % 256];
    return 0;
}
