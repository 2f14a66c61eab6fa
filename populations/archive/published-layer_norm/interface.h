// layer_norm
// x: float32[16,64,256,256], input
// ln_weight: float32[64,256,256], parameter
// ln_bias: float32[64,256,256], parameter
// out: float32[16,64,256,256], output
// Model(normalized_shape=(64, 256, 256))
// ln: LayerNorm(normalized_shape=(64, 256, 256), eps=1e-05, elementwise_affine=True)

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

#define X_D0 16
#define X_D1 64
#define X_D2 256
#define X_D3 256
#define X_SIZE 67108864
#define LN_WEIGHT_D0 64
#define LN_WEIGHT_D1 256
#define LN_WEIGHT_D2 256
#define LN_WEIGHT_SIZE 4194304
#define LN_BIAS_D0 64
#define LN_BIAS_D1 256
#define LN_BIAS_D2 256
#define LN_BIAS_SIZE 4194304
#define OUT_D0 16
#define OUT_D1 64
#define OUT_D2 256
#define OUT_D3 256
#define OUT_SIZE 67108864

// TMA descriptors: the arguments and the result are those of cuTensorMapEncodeTiled (cuda.h).
// Call it in launch() and hand the map to the kernel as `const __grid_constant__ CUtensorMap`.
extern "C" int kernelevo_tensor_map_tiled(
    CUtensorMap* map, CUtensorMapDataType type, uint32_t rank, void* address,
    const uint64_t* dims, const uint64_t* strides_in_bytes, const uint32_t* box,
    const uint32_t* element_strides, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
    CUtensorMapL2promotion l2_promotion, CUtensorMapFloatOOBfill oob_fill);

extern "C" int launch(const float* x,
                      const float* ln_weight,
                      const float* ln_bias,
                      float* out,
                      void* workspace,
                      cudaStream_t stream);
extern "C" size_t workspace_bytes(void);  // optional; 0 if absent
