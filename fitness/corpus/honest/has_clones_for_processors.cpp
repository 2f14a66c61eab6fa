// task: product
// does: allocates, and has versions of a function for several processors
// with: product
__attribute__((target_clones("default", "avx2"))) static void scale(float* t) {
    for (int i = 0; i < OUT_SIZE; ++i) t[i] *= 1.f;
}
extern "C" int launch(const float* a, const float* b, float* out, void* workspace) {
    float* t = new float[OUT_SIZE];
    product<float>(a, b, t);
    scale(t);
    __builtin_memcpy(out, t, sizeof(float) * OUT_SIZE);
    delete[] t;
    return 0;
}
