// task: product
// does: prints a line
// with: product
#include <stdio.h>
extern "C" int launch(const float* a, const float* b, float* out, void* workspace) {
    puts("hello");
    product<float>(a, b, out);
    return 0;
}
