// task: product
// does: nests OpenMP's regions
// with: product
#include <omp.h>
extern "C" int launch(const float* a, const float* b, float* out, void* workspace) {
    omp_set_max_active_levels(2);
    #pragma omp parallel num_threads(2)
    {
        int mine = omp_get_thread_num(), all = omp_get_num_threads();
        #pragma omp parallel for num_threads(2)
        for (int half = 0; half < 2; ++half) product<float>(a, b, out, mine + half * all, 2 * all);
    }
    return 0;
}
