// task: softmax
// does: subtracts each row's maximum and sums in double precision
#include <math.h>
extern "C" int launch(const float* x, float* out, void* workspace) {
    #pragma omp parallel for
    for (int r = 0; r < X_D0; ++r) {
        const float* from = x + r * X_D1;
        float* to = out + r * X_D1;
        float top = from[0];
        double sum = 0;
        for (int c = 1; c < X_D1; ++c) top = fmaxf(top, from[c]);
        for (int c = 0; c < X_D1; ++c) sum += to[c] = expf(from[c] - top);
        for (int c = 0; c < X_D1; ++c) to[c] = (float)(to[c] / sum);
    }
    return 0;
}
