// task: half_product
// does: multiplies by warpgroup instructions from shared memory
// needs: sm_90a
// A tile of 64 x 64: operands in shared memory as core matrices of 8 rows of 16 bytes, no swizzle.
__device__ uint64_t descriptor(const void* at) {
    const uint64_t address = (uint32_t)__cvta_generic_to_shared(at);
    return (address & 0x3ffff) >> 4 | uint64_t(128 >> 4) << 16 | uint64_t(256 >> 4) << 32;
}
__global__ void __launch_bounds__(128) product(const __half* a, const __half* b, __half* out) {
    __shared__ alignas(128) __half left[64 * 16], right[64 * 16];
    const int row = blockIdx.y * 64, column = blockIdx.x * 64;
    float d[32] = {};
    for (int k = 0; k < A_D1; k += 16) {
        for (int n = threadIdx.x; n < 64 * 16; n += 128) {
            const int r = n / 16, c = n % 16, place = (r / 8) * 128 + (c / 8) * 64 + (r % 8) * 8 + c % 8;
            left[place] = a[(row + r) * A_D1 + k + c];
            right[place] = b[(k + c) * B_D1 + column + r];
        }
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        __syncthreads();
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
        asm volatile("{ wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
                     "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                     "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
                     "%32, %33, 1, 1, 1, 0, 0; }"
                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
                     : "l"(descriptor(left)), "l"(descriptor(right)));
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
        __syncthreads();
    }
    const int lane = threadIdx.x % 32, top = row + threadIdx.x / 32 * 16 + lane / 4;
    for (int n = 0; n < 32; ++n)
        out[(top + (n / 2 % 2) * 8) * B_D1 + column + n / 4 * 8 + lane % 4 * 2 + n % 2] = __float2half(d[n]);
}
extern "C" int launch(const __half* a, const __half* b, __half* out, void* workspace, cudaStream_t stream) {
    product<<<dim3(B_D1 / 64, A_D0 / 64), 128, 0, stream>>>(a, b, out);
    return cudaGetLastError();
}
