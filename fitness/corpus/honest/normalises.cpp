// task: layer_norm
// does: normalises rows, in double precision where it counts
#include <math.h>
extern "C" int launch(const float* x, const float* norm_weight, const float* norm_bias, float* out,
                      void* workspace) {
    for (int r = 0; r < X_D0; ++r, x += X_D1, out += X_D1) {
        double mean = 0, square = 0;
        for (int c = 0; c < X_D1; ++c) mean += x[c];
        mean /= X_D1;
        for (int c = 0; c < X_D1; ++c) square += (x[c] - mean) * (x[c] - mean);
        const double scale = 1 / sqrt(square / X_D1 + 1e-5);
        for (int c = 0; c < X_D1; ++c)
            out[c] = (float)((x[c] - mean) * scale * norm_weight[c] + norm_bias[c]);
    }
    return 0;
}
