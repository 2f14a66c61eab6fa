// conv_block
// x: float32[100,3,224,224], input
// conv_weight: float32[96,3,11,11], parameter
// conv_bias: float32[96], parameter
// out: float32[100,96,27,27], output
// Model(in_channels=3, filters=96)
// conv: Conv2d(in_channels=3, out_channels=96, kernel_size=(11, 11), stride=(4, 4), padding=(2, 2), dilation=(1, 1), transposed=False, output_padding=(0, 0), groups=1, padding_mode='zeros')
// pool: MaxPool2d(kernel_size=3, stride=2, padding=0, dilation=1, return_indices=False, ceil_mode=False)

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

#define X_D0 100
#define X_D1 3
#define X_D2 224
#define X_D3 224
#define X_SIZE 15052800
#define CONV_WEIGHT_D0 96
#define CONV_WEIGHT_D1 3
#define CONV_WEIGHT_D2 11
#define CONV_WEIGHT_D3 11
#define CONV_WEIGHT_SIZE 34848
#define CONV_BIAS_D0 96
#define CONV_BIAS_SIZE 96
#define OUT_D0 100
#define OUT_D1 96
#define OUT_D2 27
#define OUT_D3 27
#define OUT_SIZE 6998400

// TMA descriptors: the arguments and the result are those of cuTensorMapEncodeTiled (cuda.h).
// Call it in launch() and hand the map to the kernel as `const __grid_constant__ CUtensorMap`.
extern "C" int kernelevo_tensor_map_tiled(
    CUtensorMap* map, CUtensorMapDataType type, uint32_t rank, void* address,
    const uint64_t* dims, const uint64_t* strides_in_bytes, const uint32_t* box,
    const uint32_t* element_strides, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
    CUtensorMapL2promotion l2_promotion, CUtensorMapFloatOOBfill oob_fill);

extern "C" int launch(const float* x,
                      const float* conv_weight,
                      const float* conv_bias,
                      float* out,
                      void* workspace,
                      cudaStream_t stream);
extern "C" size_t workspace_bytes(void);  // optional; 0 if absent
