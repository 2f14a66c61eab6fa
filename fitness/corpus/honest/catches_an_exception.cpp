// task: product
// does: throws and catches inside
// with: product
extern "C" int launch(const float* a, const float* b, float* out, void* workspace) {
    try {
        throw 3;
    } catch (int) {
        product<float>(a, b, out);
    }
    return 0;
}
