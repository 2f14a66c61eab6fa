// The header's TMA helper, for whoever loads a CUDA candidate: it asks the runtime for the driver's
// function, so that neither the candidate nor we link libcuda.
#pragma once

#include <cuda.h>
#include <cuda_runtime.h>
#include <stdint.h>

namespace kernelevo {

inline void* tensor_map_function() {
    static void* function = [] {
        void* found = nullptr;
        cudaDriverEntryPointQueryResult result{};
#if CUDART_VERSION >= 12050
        cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000,
                                         cudaEnableDefault, &result);
#else
        cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &found, cudaEnableDefault, &result);
#endif
        cudaGetLastError();  // a driver without it must not look like a failed launch
        return found;
    }();
    return function;
}

}  // namespace kernelevo

extern "C" __attribute__((visibility("default"))) int kernelevo_tensor_map_tiled(
    CUtensorMap* map, CUtensorMapDataType type, uint32_t rank, void* address, const uint64_t* dims,
    const uint64_t* strides_in_bytes, const uint32_t* box, const uint32_t* element_strides,
    CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
    CUtensorMapL2promotion l2_promotion, CUtensorMapFloatOOBfill oob_fill) {
    using Function = decltype(&cuTensorMapEncodeTiled);
    auto encode = reinterpret_cast<Function>(kernelevo::tensor_map_function());
    if (!encode) return CUDA_ERROR_NOT_SUPPORTED;
    return encode(map, type, rank, address, reinterpret_cast<const cuuint64_t*>(dims),
                  reinterpret_cast<const cuuint64_t*>(strides_in_bytes), box, element_strides,
                  interleave, swizzle, l2_promotion, oob_fill);
}
