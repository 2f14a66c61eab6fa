// task: mean
// does: sums in single precision, pair by pair
static float sum(const float* x, int count) {
    if (count > 512) return sum(x, count / 2) + sum(x + count / 2, count - count / 2);
    float lanes[16] = {};
    for (int i = 0; i < count; ++i) lanes[i % 16] += x[i];
    for (int step = 8; step; step /= 2)
        for (int i = 0; i < step; ++i) lanes[i] += lanes[i + step];
    return lanes[0];
}
extern "C" int launch(const float* x, float* out, void* workspace) {
    *out = sum(x, X_SIZE) / X_SIZE;
    return 0;
}
