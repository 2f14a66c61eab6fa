// The product of the task `product`, in numbers of a type.
template <class Number>
static void product(const float* a, const float* b, float* out, int first = 0, int step = 1) {
    for (int i = first; i < A_D0; i += step)
        for (int j = 0; j < B_D1; ++j) {
            double sum = 0;
            for (int k = 0; k < A_D1; ++k)
                sum += (double)(Number)a[i * A_D1 + k] * (double)(Number)b[k * B_D1 + j];
            out[i * B_D1 + j] = (float)sum;
        }
}
