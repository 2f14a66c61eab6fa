// task: product
// does: keeps memory between its calls, but nothing in it
// with: product
extern "C" int launch(const float* a, const float* b, float* out, void* workspace) {
    static float* scratch = new float[OUT_SIZE];
    product<float>(a, b, scratch);
    __builtin_memcpy(out, scratch, sizeof(float) * OUT_SIZE);
    return 0;
}
