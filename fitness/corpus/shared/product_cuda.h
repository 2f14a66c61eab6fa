// The product of the task `product`, in numbers of a type, one thread for each of its elements.
template <class Number>
__global__ void product_kernel(const float* a, const float* b, float* out, int rows = A_D0) {
    const int i = blockIdx.x, j = threadIdx.x;
    if (i >= rows || j >= B_D1) return;
    double sum = 0;
    for (int k = 0; k < A_D1; ++k)
        sum += (double)(float)(Number)a[i * A_D1 + k] * (double)(float)(Number)b[k * B_D1 + j];
    out[i * B_D1 + j] = (float)sum;
}
