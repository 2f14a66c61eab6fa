// matmul_fp16
// a: float16[4096,4096], input
// b: float16[4096,4096], input
// out: float16[4096,4096], output

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

#define A_D0 4096
#define A_D1 4096
#define A_SIZE 16777216
#define B_D0 4096
#define B_D1 4096
#define B_SIZE 16777216
#define OUT_D0 4096
#define OUT_D1 4096
#define OUT_SIZE 16777216

// TMA descriptors: the arguments and the result are those of cuTensorMapEncodeTiled (cuda.h).
// Call it in launch() and hand the map to the kernel as `const __grid_constant__ CUtensorMap`.
extern "C" int kernelevo_tensor_map_tiled(
    CUtensorMap* map, CUtensorMapDataType type, uint32_t rank, void* address,
    const uint64_t* dims, const uint64_t* strides_in_bytes, const uint32_t* box,
    const uint32_t* element_strides, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
    CUtensorMapL2promotion l2_promotion, CUtensorMapFloatOOBfill oob_fill);

extern "C" int launch(const __half* a,
                      const __half* b,
                      __half* out,
                      void* workspace,
                      cudaStream_t stream);
extern "C" size_t workspace_bytes(void);  // optional; 0 if absent
