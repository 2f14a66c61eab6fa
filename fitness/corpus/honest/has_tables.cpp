// task: product
// does: has a table made at compile time
// with: product
struct Table {
    float v[1024];
};
static constexpr Table table = [] {
    Table t{};
    for (int i = 0; i < 1024; ++i) t.v[i] = i * .5f;
    return t;
}();
extern "C" int launch(const float* a, const float* b, float* out, void* workspace) {
    product<float>(a, b, out);
    for (int i = 0; i < OUT_SIZE; ++i) out[i] *= table.v[2];
    return 0;
}
