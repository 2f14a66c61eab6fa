// task: relu
// does: loads tiles by the tensor memory accelerator
// needs: sm_90
__global__ void relu(const __grid_constant__ CUtensorMap map, float* out) {
    __shared__ alignas(128) float tile[8][32];
    __shared__ alignas(8) uint64_t bar;
    const uint32_t at = (uint32_t)__cvta_generic_to_shared(&bar);
    const uint32_t to = (uint32_t)__cvta_generic_to_shared(&tile);
    const int column = blockIdx.x * 32, row = blockIdx.y * 8;
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(at));
        asm volatile("fence.proxy.async.shared::cta;");
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 1024;" :: "r"(at));
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
                     "[%0], [%1, {%2, %3}], [%4];"
                     :: "r"(to), "l"(&map), "r"(column), "r"(row), "r"(at) : "memory");
    }
    __syncthreads();
    asm volatile("{ .reg .pred done; wait: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], 0;"
                 " @!done bra wait; }" :: "r"(at) : "memory");
    for (int i = threadIdx.x; i < 256; i += 64)
        out[(row + i / 32) * X_D1 + column + i % 32] = fmaxf(tile[i / 32][i % 32], 0.0f);
}
extern "C" int launch(const float* x, float* out, void* workspace, cudaStream_t stream) {
    CUtensorMap map;
    uint64_t sizes[2] = {X_D1, X_D0}, strides[1] = {sizeof(float) * X_D1};
    uint32_t box[2] = {32, 8}, steps[2] = {1, 1};
    if (int code = kernelevo_tensor_map_tiled(
            &map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, (void*)x, sizes, strides, box, steps,
            CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
            CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE)) return code;
    relu<<<dim3(X_D1 / 32, X_D0 / 8), 64, 0, stream>>>(map, out);
    return cudaGetLastError();
}
