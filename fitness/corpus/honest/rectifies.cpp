// task: relu
// does: keeps what is not negative
extern "C" int launch(const float* x, float* out, void* workspace) {
    for (int i = 0; i < X_SIZE; ++i) out[i] = x[i] > 0 ? x[i] : 0;
    return 0;
}
