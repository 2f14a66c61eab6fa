// rms_norm_cpu
// x: float32[1024,2048], input
// weight: float32[2048], parameter
// out: float32[1024,2048], output
// Model(features=2048, eps=1e-06)
// self: Model(eps=1e-06)

#include <stddef.h>
#include <stdint.h>

#define X_D0 1024
#define X_D1 2048
#define X_SIZE 2097152
#define WEIGHT_D0 2048
#define WEIGHT_SIZE 2048
#define OUT_D0 1024
#define OUT_D1 2048
#define OUT_SIZE 2097152

extern "C" int launch(const float* x,
                      const float* weight,
                      float* out,
                      void* workspace);
extern "C" size_t workspace_bytes(void);  // optional; 0 if absent
