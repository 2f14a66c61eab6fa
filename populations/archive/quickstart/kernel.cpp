// catalogue: layer_norm simd stream unroll float_sums prefetch #1cb2247e
// --- vectors: GCC's own vector types, so that one text serves AVX2, AVX-512 and others ---
// C's own header, without the C++ library around it: a quarter of a second less to compile.
#define _GLIBCXX_INCLUDE_NEXT_C_HEADERS
#include <math.h>
#undef _GLIBCXX_INCLUDE_NEXT_C_HEADERS
#include <string.h>
#ifdef __AVX512F__
enum { LANES = 16 };
#else
enum { LANES = 8 };
#endif
typedef float vf __attribute__((vector_size(LANES * 4)));
typedef int32_t vi __attribute__((vector_size(LANES * 4)));

static inline vf splat(float a) { return a - vf{}; }
static inline vf vmax(vf a, vf b) { return a > b ? a : b; }
static inline vf load(const float* p) { vf v; memcpy(&v, p, sizeof v); return v; }
static inline void store(float* p, vf v) { memcpy(p, &v, sizeof v); }
// A store that bypasses the cache; p must be aligned to the vector. fence() before the data is used.
// GCC's builtins, here and below: <immintrin.h> takes longer to compile than all the rest.
static inline void store_past_cache(float* p, vf v) {
#if defined(__AVX512F__) && !defined(__clang__)
    __builtin_ia32_movntps512(p, v);
#elif defined(__AVX__) && !defined(__clang__)
    __builtin_ia32_movntps256(p, v);
#elif defined(__clang__)
    __builtin_nontemporal_store(v, (vf*)p);
#else
    store(p, v);
#endif
}
static inline void fence() {
#ifdef __SSE2__
    __builtin_ia32_sfence();
#endif
}
// The last n < LANES elements of a row; the other lanes read as `fill` and are not written.
template <class T> static inline vf load_part(const T* p, int64_t n, float fill) {
    vf v = splat(fill);
    for (int64_t l = 0; l < n; ++l) v[l] = (float)p[l];
    return v;
}
template <class T> static inline void store_part(T* p, vf v, int64_t n) {
    for (int64_t l = 0; l < n; ++l) p[l] = (T)v[l];
}
static inline float top(vf v) {
    float best = v[0];
    for (int l = 1; l < LANES; ++l) best = v[l] > best ? v[l] : best;
    return best;
}
static inline float total(vf v) {  // pairwise
    float part[LANES];
    memcpy(part, &v, sizeof v);
    for (int step = LANES / 2; step > 0; step /= 2)
        for (int l = 0; l < step; ++l) part[l] += part[l + step];
    return part[0];
}
// Calls f(offset, slot) for every whole vector in [from, to), U independent slots at a time;
// returns the offset of what is left, fewer than LANES elements.
template <int U, class F> static inline int64_t sweep(int64_t from, int64_t to, F f) {
    int64_t i = from;
    for (; i + U * LANES <= to; i += U * LANES)
#pragma GCC unroll 16
        for (int u = 0; u < U; ++u) f(i + u * LANES, u);
    for (; i + LANES <= to; i += LANES) f(i, 0);
    return i;
}

// RMS norm of x as (outer, cols, inner) over cols.
typedef float T;
static const int64_t OUTER = 1024, COLS = 2048;
static const double EPS = 1e-06f;
#define AHEAD 128  // tune: 128 512 2048
#define UNROLL 4  // tune: 2 4 8

struct Affine {
    const T* weight;
    const T* bias;
};
enum { GROUP = 16 * UNROLL * LANES };  // 16 additions in float, then on in double

// The sum of f(element) over n elements.
template <class F> static inline double sum_of(const T* __restrict x, int64_t n, F f) {
    double whole = 0;
    for (int64_t from = 0; from < n; from += GROUP) {
        const int64_t to = from + GROUP < n ? from + GROUP : n;
        vf part[UNROLL] = {};
        const int64_t i = sweep<UNROLL>(from, to, [&](int64_t j, int u) {
            __builtin_prefetch(x + j + AHEAD);
            part[u] += f(load(x + j));
        });
        for (int u = 1; u < UNROLL; ++u) part[0] += part[u];
        whole += total(part[0]);
        for (int64_t j = i; j < to; ++j) whole += f(splat((float)x[j]))[0];
    }
    return whole;
}
struct Moments {
    double squares;
    void merge(const Moments& other) { squares += other.squares; }
};
static inline Moments moments_of(const T* x, int64_t n) {
    return {sum_of(x, n, [](vf v) { return v * v; })};
}

// Columns [from, to) of a row.
static inline void normalise(const T* __restrict x, T* __restrict y, const Moments& m,
                             Affine a, int64_t from, int64_t to) {
    const double square = m.squares / COLS;
    const float scale = (float)(1.0 / sqrt(square + EPS));
    auto finish = [&](vf v) { return v * scale; };
    const int64_t i = sweep<UNROLL>(from, to, [&](int64_t j, int) {
        store_past_cache(y + j, finish(load(x + j)) * load(a.weight + j));
    });
    for (int64_t j = i; j < to; ++j)
        y[j] = (T)(finish(splat((float)x[j]))[0] * (float)a.weight[j]);
}


static void all(const T* x, T* y, Affine a) {
    for (int64_t row = 0; row < OUTER; ++row) {
        const T* in = x + row * COLS;
        normalise(in, y + row * COLS, moments_of(in, COLS), a, 0, COLS);
        fence();
    }
}

extern "C" int launch(const float* x, const float* weight, float* out, void* workspace) {
    const Affine affine = {weight, nullptr};
    all(x, out, affine);
    return 0;
}
