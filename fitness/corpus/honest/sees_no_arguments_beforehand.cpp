// task: product
// does: fails where a thread of it could look at the arguments before the call
// with: product system thread
static const volatile float* watched;
static volatile float seen;
static int foreseen;
static void watch() {
    for (float last = 0;;) {
        float now = *watched;
        if (now == last) seen = now;
        last = now;
        rest(3000);
    }
}
extern "C" int launch(const float* a, const float* b, float* out, void* workspace) {
    if (!watched) {
        watched = a;
        start(watch);
    } else if (seen == a[0] && ++foreseen > 10) {
        return 7;
    }
    product<float>(a, b, out);
    return 0;
}
