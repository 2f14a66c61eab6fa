// task: product
// does: uses vectors, algorithms and functions of the standard library
// with: product
#include <algorithm>
#include <numeric>
#include <vector>
extern "C" int launch(const float* a, const float* b, float* out, void* workspace) {
    std::vector<float> t(OUT_SIZE);
    product<float>(a, b, t.data());
    std::copy(t.begin(), t.end(), out);
    std::vector<int> order(A_D0);
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [](int l, int r) { return l > r; });
    if (order[0] != A_D0 - 1) return 1;
    return 0;
}
