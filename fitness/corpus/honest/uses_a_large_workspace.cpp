// task: product
// does: uses 64 MiB of workspace
// with: product
extern "C" size_t workspace_bytes(void) { return 64 << 20; }
extern "C" int launch(const float* a, const float* b, float* out, void* workspace) {
    float* t = (float*)workspace + (15 << 20);
    __builtin_memcpy(t, b, sizeof(float) * B_SIZE);
    product<float>(a, t, out);
    return 0;
}
