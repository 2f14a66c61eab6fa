// attention_fp16
// q: float16[16,16,2048,64], input
// k: float16[16,16,2048,64], input
// v: float16[16,16,2048,64], input
// out: float16[16,16,2048,64], output

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

#define Q_D0 16
#define Q_D1 16
#define Q_D2 2048
#define Q_D3 64
#define Q_SIZE 33554432
#define K_D0 16
#define K_D1 16
#define K_D2 2048
#define K_D3 64
#define K_SIZE 33554432
#define V_D0 16
#define V_D1 16
#define V_D2 2048
#define V_D3 64
#define V_SIZE 33554432
#define OUT_D0 16
#define OUT_D1 16
#define OUT_D2 2048
#define OUT_D3 64
#define OUT_SIZE 33554432

// TMA descriptors: the arguments and the result are those of cuTensorMapEncodeTiled (cuda.h).
// Call it in launch() and hand the map to the kernel as `const __grid_constant__ CUtensorMap`.
extern "C" int kernelevo_tensor_map_tiled(
    CUtensorMap* map, CUtensorMapDataType type, uint32_t rank, void* address,
    const uint64_t* dims, const uint64_t* strides_in_bytes, const uint32_t* box,
    const uint32_t* element_strides, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
    CUtensorMapL2promotion l2_promotion, CUtensorMapFloatOOBfill oob_fill);

extern "C" int launch(const __half* q,
                      const __half* k,
                      const __half* v,
                      __half* out,
                      void* workspace,
                      cudaStream_t stream);
extern "C" size_t workspace_bytes(void);  // optional; 0 if absent
