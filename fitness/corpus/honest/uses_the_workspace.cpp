// task: product
// does: copies an operand into the workspace first
// with: product
extern "C" size_t workspace_bytes(void) { return sizeof(float) * B_SIZE; }
extern "C" int launch(const float* a, const float* b, float* out, void* workspace) {
    float* t = (float*)workspace;
    __builtin_memcpy(t, b, sizeof(float) * B_SIZE);
    product<float>(a, t, out);
    return 0;
}
