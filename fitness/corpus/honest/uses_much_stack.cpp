// task: product
// does: has a large array on the stack
// with: product
extern "C" int launch(const float* a, const float* b, float* out, void* workspace) {
    volatile float big[1500000];
    big[0] = big[1499999] = 0;
    product<float>(a, b, out);
    return 0;
}
