// softmax
// x: float32[4096,65536], input
// out: float32[4096,65536], output

#include <stddef.h>
#include <stdint.h>
#include <cuda.h>
#include <cuda_runtime.h>
#ifndef KERNELEVO_NO_HALF
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#endif
#ifndef KERNELEVO_NO_MMA
#include <mma.h>
#endif

#define X_D0 4096
#define X_D1 65536
#define X_SIZE 268435456
#define OUT_D0 4096
#define OUT_D1 65536
#define OUT_SIZE 268435456

// TMA descriptors: the arguments and the result are those of cuTensorMapEncodeTiled (cuda.h).
// Call it in launch() and hand the map to the kernel as `const __grid_constant__ CUtensorMap`.
extern "C" int kernelevo_tensor_map_tiled(
    CUtensorMap* map, CUtensorMapDataType type, uint32_t rank, void* address,
    const uint64_t* dims, const uint64_t* strides_in_bytes, const uint32_t* box,
    const uint32_t* element_strides, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
    CUtensorMapL2promotion l2_promotion, CUtensorMapFloatOOBfill oob_fill);

extern "C" int launch(const float* x,
                      float* out,
                      void* workspace,
                      cudaStream_t stream);
extern "C" size_t workspace_bytes(void);  // optional; 0 if absent
