// task: product
// does: uses the compiler's vector types
typedef double Four __attribute__((vector_size(32)));
extern "C" int launch(const float* a, const float* b, float* out, void* workspace) {
    for (int i = 0; i < A_D0; ++i)
        for (int j = 0; j < B_D1; j += 4) {
            Four sum = {};
            for (int k = 0; k < A_D1; ++k) {
                const float* p = b + k * B_D1 + j;
                sum += (double)a[i * A_D1 + k] * Four{p[0], p[1], p[2], p[3]};
            }
            for (int l = 0; l < 4; ++l) out[i * B_D1 + j + l] = (float)sum[l];
        }
    return 0;
}
