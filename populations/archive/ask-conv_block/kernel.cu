#define RAW 3  // tune: 2 3 4
#define HANDOVER 6  // tune: 0 4 8 12
#define FETCHES 4  // tune: 1 2 4 8

constexpr int IMAGES = 100, SIDE = 224, FILTERS = 96, TAPS = 11, POOL = 27;
constexpr int PLANE = SIDE * SIDE, W_SIZE = 3 * TAPS * TAPS;
constexpr int GRID = 132;                                // one block for each SM, two pipelines in each
constexpr int PIPES = 2, THREADS = 256 * PIPES;
constexpr int PIXEL_GROUPS = 58;                         // 57 groups of 4 columns, and one of zeros
constexpr int UNIT = PIXEL_GROUPS * 16;                  // a plane: 8 halves for each group of columns
constexpr int SLOT = 6 * UNIT;                           // 4 input rows of 3 channels
constexpr int RAW_PITCH = SIDE * 4;                      // rows as they are in the image: 4 of a channel are one piece
constexpr int RAW_SLOT = 12 * RAW_PITCH;                 // [channel][4 rows][224 columns] of float, by bulk copies
constexpr int HALF = 13 - 2 * RAW;                       // slots of halves; a pair of rows holds 4 of them
constexpr int PIPE_SPACE = RAW * RAW_SLOT + HALF * SLOT;
constexpr int STEPS = 26;                                // products of depth 16 for a conv row
constexpr int W_UNIT = FILTERS * 16, W_BYTES = STEPS * 2 * W_UNIT;
// The filters, one scale each, and what undoes the scales lie in the workspace as they do in shared memory.
constexpr int FETCH_BYTES = W_BYTES + FILTERS * 4;
constexpr int AT_W = PIPES * PIPE_SPACE;
constexpr int AT_UNSCALE = AT_W + W_BYTES;
constexpr int AT_BIAS = AT_UNSCALE + FILTERS * 4;
constexpr int SHARED = AT_BIAS + FILTERS * 4;
constexpr int PRODUCER_REGISTERS = 48, CONSUMER_REGISTERS = 208;

__device__ __forceinline__ uint32_t shared_at(const void* p) { return (uint32_t)__cvta_generic_to_shared(p); }
__device__ __forceinline__ void barrier_init(uint64_t* bar, uint32_t arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_at(bar)), "r"(arrivals) : "memory");
}
__device__ __forceinline__ void fence_init() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
__device__ __forceinline__ void barrier_arrive(uint64_t* bar) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_at(bar)) : "memory");
}
__device__ __forceinline__ void barrier_wait(uint64_t* bar, uint32_t parity) {
    asm volatile("{\n.reg .pred done;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n@done bra out;\nbra again;\nout:\n}"
                 ::"r"(shared_at(bar)), "r"(parity) : "memory");
}
__device__ __forceinline__ void publish() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
__device__ __forceinline__ void publish_all() { asm volatile("fence.proxy.async;" ::: "memory"); }
__device__ __forceinline__ unsigned acquire(const unsigned* p) {
    unsigned v;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
    return v;
}
__device__ unsigned filters_ready, blocks_past;  // both zero between calls
__device__ __forceinline__ void sync_some(int id, int threads) {
    asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
__device__ __forceinline__ void barrier_expect(uint64_t* bar, uint32_t bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_at(bar)), "r"(bytes) : "memory");
}
__device__ __forceinline__ void bulk_load(void* to, const void* from, uint32_t bytes, uint64_t* bar) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                 ::"r"(shared_at(to)), "l"(from), "r"(bytes), "r"(shared_at(bar)) : "memory");
}
__device__ __forceinline__ void products_begin() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void products_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int LEFT> __device__ __forceinline__ void products_wait() { asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(LEFT) : "memory"); }
template <int N> __device__ __forceinline__ void give_registers() { asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(N)); }
template <int N> __device__ __forceinline__ void take_registers() { asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(N)); }
#define F4(c, i) "+f"(c[i]), "+f"(c[i + 1]), "+f"(c[i + 2]), "+f"(c[i + 3])
#define F16(c, i) F4(c, i), F4(c, i + 4), F4(c, i + 8), F4(c, i + 12)
__device__ __forceinline__ void multiply(float (&c)[48], uint32_t a, uint32_t b) {
    asm volatile("{\n.reg .pred p;\n.reg .b64 da, db;\nmov.b64 da, {%48, 7};\nmov.b64 db, {%49, 8};\nsetp.eq.b32 p, 0, 0;\nwgmma.mma_async.sync.aligned.m64n96k16.f32.f16.f16 {"
        "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,"
        "%24,%25,%26,%27,%28,%29,%30,%31,%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47},"
        " da, db, p, 1, 1, 0, 0;\n}"
        : F16(c, 0), F16(c, 16), F16(c, 32) : "r"(a), "r"(b));
}

#define N4(c, i) "=f"(c[i]), "=f"(c[i + 1]), "=f"(c[i + 2]), "=f"(c[i + 3])
#define N16(c, i) N4(c, i), N4(c, i + 4), N4(c, i + 8), N4(c, i + 12)
// A row's first product: what the sums held before is not read, and needs no registers until then.
__device__ __forceinline__ void multiply_first(float (&c)[48], uint32_t a, uint32_t b) {
    asm volatile("{\n.reg .pred p;\n.reg .b64 da, db;\nmov.b64 da, {%48, 7};\nmov.b64 db, {%49, 8};\nsetp.ne.b32 p, 0, 0;\nwgmma.mma_async.sync.aligned.m64n96k16.f32.f16.f16 {"
        "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,"
        "%24,%25,%26,%27,%28,%29,%30,%31,%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47},"
        " da, db, p, 1, 1, 0, 0;\n}"
        : N16(c, 0), N16(c, 16), N16(c, 32) : "r"(a), "r"(b));
}

__device__ __forceinline__ void keep(float (&c)[48]) {  // no use of the sums moves across this
#pragma unroll
    for (int i = 0; i < 48; ++i) asm volatile("" : "+f"(c[i])::"memory");
}

// K: a unit is 8 halves, two (input row r of 4, channel) combinations of 4 columns each, combination r * 3 + channel.
// A product takes two units. Of the filter's last 4 rows only 3 exist: 5 units of 6 hold weights, so two steps
// join unit 4 of several column offsets.
constexpr __host__ __device__ int slot_of(int step) { return step < 9 ? 0 : step < 18 ? 1 : 2; }
constexpr __host__ __device__ int shift_of(int step, int half) {
    return step < 18 ? step % 9 / 3 : step < 24 ? (step - 18) / 2 : step == 24 ? half : 2;
}
constexpr __host__ __device__ int unit_of(int step, int half) {
    return step < 18 ? step % 3 * 2 + half : step < 24 ? step % 2 * 2 + half : step == 24 ? 4 : 4 + half;
}
constexpr __host__ __device__ int leading_of(int step) { return step == 24 ? 16 : UNIT; }
constexpr __host__ __device__ uint32_t a_step(int s) {  // from the start of the image slot
    return (uint32_t)((unit_of(s, 0) * UNIT + shift_of(s, 0) * 16) >> 4 | (leading_of(s) >> 4) << 16);
}

// The slots of a stream of pooled rows: 4 input rows each, from 4 row - 2. A segment (the rows of one image) has the conv
// rows from the even one under its first pooled row to an even one, and two slots more than conv rows.
struct Walk {
    int p, end, image, row, left;
    __device__ __forceinline__ void open() {
        image = p / POOL;
        const int first = p - image * POOL;
        const int count = min(POOL - first, end - p);
        p += count;
        row = 2 * first;
        left = 2 * count + 3;
    }
    __device__ __forceinline__ Walk(int from, int to) : p(from), end(to), image(0), row(0), left(0) {
        if (p < end) open();
    }
    __device__ __forceinline__ void next() {
        ++row;
        if (--left == 0 && p < end) open();
    }
};

// Turns at the tensor cores that a stream takes: one for each pooled row, and one for each segment's first conv row.
__device__ __forceinline__ int turns_of(int stream) {
    const int begin = IMAGES * POOL * stream / (GRID * PIPES), end = IMAGES * POOL * (stream + 1) / (GRID * PIPES);
    return end - begin + (end - 1) / POOL - begin / POOL + 1;
}

// Half keeps 11 bits if the largest value lies in this range; otherwise a power of two moves it to 2^8.
__device__ __forceinline__ bool fits(float largest, float scale) {
    const float scaled = largest * scale;
    return largest == 0.f || (scaled >= 0.015625f && scaled <= 32768.f);
}
__device__ __forceinline__ float scale_for(float largest) {
    const int e = (int)(__float_as_uint(largest) >> 23);
    return __uint_as_float((uint32_t)min(max(262 - e, 1), 253) << 23);
}
__device__ __forceinline__ float inverse(float power) { return __uint_as_float((254u << 23) - __float_as_uint(power)); }
__device__ __forceinline__ uint32_t pack(float a, float b) {
    const __half2 h = __floats2half2_rn(a, b);
    return *reinterpret_cast<const uint32_t*>(&h);
}
__device__ __forceinline__ float largest_of(float m, float4 v) {
    return fmaxf(fmaxf(fmaxf(m, fabsf(v.x)), fabsf(v.y)), fmaxf(fabsf(v.z), fabsf(v.w)));
}

// Pools along the row and stores. The 8-pixel pieces of the product's rows overlap by one column: a warp holds
// columns 14 w + q and 14 w + 7 + q (q = lane / 4), all it needs for 7 pooled columns. Even q make the pooled
// columns of the first piece, odd q those of the second.
// The filter's scale is undone here: a positive power commutes with the maximum.
__device__ __forceinline__ void pool_store(const float (&v)[48], float* to, const float* unscale, const float* bias, int lane,
                                           bool active) {
    const int q = lane >> 2;
    const bool odd = q & 1;
    const int from = q == 6 ? (lane & 3) + 4 : (lane + 8) & 31;
#pragma unroll
    for (int n = 0; n < 12; ++n) {
        const float2 add = *reinterpret_cast<const float2*>(bias + n * 8 + (lane & 3) * 2);
        const float2 times = *reinterpret_cast<const float2*>(unscale + n * 8 + (lane & 3) * 2);
#pragma unroll
        for (int b = 0; b < 2; ++b) {
            const float first = v[n * 4 + b], second = v[n * 4 + 2 + b];
            const float even = odd ? second : first;
            const float other = __shfl_down_sync(0xffffffffu, odd ? first : second, 4);
            const float next = __shfl_sync(0xffffffffu, even, from);
            const float m = fmaf(fmaxf(fmaxf(even, other), next), b ? times.y : times.x, b ? add.y : add.x);
            if (active) to[(n * 8 + b) * (POOL * POOL)] = fmaxf(m, 0.f);
        }
    }
}

__global__ void __launch_bounds__(THREADS, 1)
conv_pool(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
          float* __restrict__ out, unsigned char* bank) {
    extern __shared__ __align__(128) unsigned char memory[];
    __shared__ uint64_t filters_here;
    __shared__ __half staging[W_SIZE];
    __shared__ uint64_t arrived[PIPES][RAW], full[PIPES][HALF], empty[PIPES][HALF];
    __shared__ uint64_t turn[PIPES];
    __shared__ float unscale[PIPES][HALF];
    __shared__ float part[PIPES][2][4];
    __shared__ float part_w[8];
    __shared__ int raw_row[PIPES][RAW];  // the group of rows that a raw slot holds; published by its barrier

    const int thread = threadIdx.x, lane = thread & 31;
    const int warpgroup = __shfl_sync(0xffffffffu, thread >> 7, 0);
    const int warp = __shfl_sync(0xffffffffu, thread >> 5 & 3, 0);
    const int pipe = warpgroup % PIPES;
    // This block's filter, on its way while the barriers are made.
    const int filter = blockIdx.x, t = thread - 128 * PIPES;
    float w0 = 0.f, w1 = 0.f, my_bias = 0.f;
    if (t >= 0) {
        if (filter < FILTERS) {
            w0 = __ldg(weight + filter * W_SIZE + t);
            if (t + 128 * PIPES < W_SIZE) w1 = __ldg(weight + filter * W_SIZE + t + 128 * PIPES);
        }
        if (t < FILTERS) my_bias = __ldg(bias + t);
    }
    if (thread == 0) {
        barrier_init(&filters_here, 1);
        for (int k = 0; k < PIPES; ++k) {
            barrier_init(&turn[k], 4);
            for (int s = 0; s < RAW; ++s) barrier_init(&arrived[k][s], 1);
            for (int s = 0; s < HALF; ++s) {
                barrier_init(&full[k][s], 1);
                barrier_init(&empty[k][s], 4);
            }
        }
        fence_init();
        publish();
    }
    __syncthreads();

    const int stream = blockIdx.x * PIPES + pipe;
    const int begin = IMAGES * POOL * stream / (GRID * PIPES), end = IMAGES * POOL * (stream + 1) / (GRID * PIPES);
    unsigned char* raw = memory + pipe * PIPE_SPACE;
    unsigned char* halves = raw + RAW * RAW_SLOT;

    if (warpgroup < PIPES) {  // producers: groups of 4 input rows to half, 4 columns x 2 (row, channel) to a unit
        give_registers<PRODUCER_REGISTERS>();
        // A thread makes the units 3 h to 3 h + 2 (neighbours, so that the offsets are constants) of a group of columns: (row, channel) combinations 6 h to 6 h + 5.
        // A lane loads the aligned columns 4 q to 4 q + 3; the group's first two columns come from the lane below, so
        // lane 0 only loads, and the two warps overlap by one. Beyond the row's ends the values are zero.
        const int thread_k = thread & 127, h = warp >> 1, q = (warp & 1) * 31 + lane - 1;
        const bool works = lane != 0 && q < PIXEL_GROUPS, loads = q >= 0 && q < SIDE / 4;
        const int from = h * (2 * RAW_PITCH) + q * 16, to = h * (3 * UNIT) + q * 16;
        Walk ahead(begin, end);
        // Rows outside the image are not copied (two of the first group, two of the last), and taken as zeros below.
        auto fill = [&](int k) {
            if (thread_k == 0) {
                const int top = max(ahead.row * 4 - 2, 0), rows = min(ahead.row * 4 + 2, SIDE) - top;
                unsigned char* into = raw + k * RAW_SLOT + (ahead.row == 0 ? 2 * RAW_PITCH : 0);
                const float* from_x = x + ahead.image * (3 * PLANE) + top * SIDE;
                raw_row[pipe][k] = ahead.row;
                barrier_expect(&arrived[pipe][k], 3 * rows * RAW_PITCH);
#pragma unroll
                for (int c = 0; c < 3; ++c)
                    bulk_load(into + c * 4 * RAW_PITCH, from_x + c * PLANE, rows * RAW_PITCH, &arrived[pipe][k]);
            }
            ahead.next();
        };
#pragma unroll 1
        for (int k = 0; k < RAW; ++k)
            if (ahead.left) fill(k);
        const int slots = 2 * (end - begin) + 3 * ((end - 1) / POOL - begin / POOL + 1);
        float scale = 1.f;
        int stage = 0, round = 0, place = 0, parity = 0;
#pragma unroll 1
        for (int n = 0; n < slots; ++n) {
            const unsigned char* source = raw + place * RAW_SLOT + from;
            unsigned char* target = halves + stage * SLOT + to;
            barrier_wait(&arrived[pipe][place], parity);
            if (round) barrier_wait(&empty[pipe][stage], (round - 1) & 1);
            const int group = raw_row[pipe][place];
            const bool inside = loads && (h == 0 ? group != 0 : group != SIDE / 4);
            float* parts = part[pipe][n & 1];
            float largest;
#pragma unroll 1
            for (bool again = true; again;) {
                largest = 0.f;
#pragma unroll
                for (int u = 0; u < 3; ++u) {
                    float4 a = make_float4(0.f, 0.f, 0.f, 0.f), b = a;
                    if (inside) {
                        a = *reinterpret_cast<const float4*>(source + (u * 2 % 3 * 4 + u * 2 / 3) * RAW_PITCH);
                        b = *reinterpret_cast<const float4*>(source + ((u * 2 + 1) % 3 * 4 + (u * 2 + 1) / 3) * RAW_PITCH);
                    }
                    largest = largest_of(largest_of(largest, a), b);
                    const uint32_t a_left = __shfl_up_sync(0xffffffffu, pack(a.z * scale, a.w * scale), 1);
                    const uint32_t b_left = __shfl_up_sync(0xffffffffu, pack(b.z * scale, b.w * scale), 1);
                    if (works)
                        *reinterpret_cast<uint4*>(target + u * UNIT) =
                            make_uint4(a_left, pack(a.x * scale, a.y * scale), b_left, pack(b.x * scale, b.y * scale));
                }
                publish();
                const uint32_t top = __reduce_max_sync(0xffffffffu, __float_as_uint(largest));
                if (lane == 0) parts[warp] = __uint_as_float(top);
                sync_some(1 + pipe, 128);
                largest = fmaxf(fmaxf(parts[0], parts[1]), fmaxf(parts[2], parts[3]));
                again = !fits(largest, scale) && scale != scale_for(largest);
                if (again) {
                    scale = scale_for(largest);
                    sync_some(1 + pipe, 128);  // the parts have been read by all before they are written again
                }
            }
            // Every load of the raw slot has gone into the maximum, so it may be filled again.
            if (ahead.left) fill(place);
            if (thread_k == 0) {
                unscale[pipe][stage] = inverse(scale);
                barrier_arrive(&full[pipe][stage]);
            }
            if (++stage == HALF) stage = 0, ++round;
            if (++place == RAW) place = 0, parity ^= 1;
        }
    } else {  // consumers: a conv row is a product of 64 pixels x 96 filters
        take_registers<CONSUMER_REGISTERS>();
        unsigned char* w = memory + AT_W;
        float* biases = reinterpret_cast<float*>(memory + AT_BIAS);
        const float* unscales = reinterpret_cast<const float*>(memory + AT_UNSCALE);
        constexpr int CONSUMERS = 128 * PIPES, MAKERS = 64, UNITS = STEPS * 2;
        if (t < FILTERS) biases[t] = my_bias;  // the next barrier is before every use

        if (filter < FILTERS) {
            const uint32_t top = __reduce_max_sync(0xffffffffu, __float_as_uint(fmaxf(fabsf(w0), fabsf(w1))));
            if (lane == 0) part_w[t >> 5] = __uint_as_float(top);
            sync_some(1 + PIPES, CONSUMERS);
            float largest = 0.f;
#pragma unroll
            for (int i = 0; i < 4 * PIPES; ++i) largest = fmaxf(largest, part_w[i]);
            const float scale = fits(largest, 1.f) ? 1.f : scale_for(largest);
            staging[t] = __float2half_rn(w0 * scale);
            if (t + CONSUMERS < W_SIZE) staging[t + CONSUMERS] = __float2half_rn(w1 * scale);
            sync_some(1 + PIPES, CONSUMERS);
            if (t < MAKERS) {
                if (t < UNITS) {
                    const int step = t >> 1, half = t & 1;
                    const int ky = slot_of(step) * 4, kx = shift_of(step, half) * 4, u = unit_of(step, half);
                    __align__(16) __half e[8];
#pragma unroll
                    for (int k = 0; k < 8; ++k) {
                        const int pair = u * 2 + k / 4;
                        const int row = ky + pair / 3, column = kx + k % 4;
                        e[k] = row < TAPS && column < TAPS ? staging[pair % 3 * (TAPS * TAPS) + row * TAPS + column]
                                                           : __float2half(0.f);
                    }
                    *reinterpret_cast<uint4*>(bank + t * W_UNIT + filter * 16) = *reinterpret_cast<const uint4*>(e);
                }
                if (t == MAKERS - 1) *reinterpret_cast<float*>(bank + W_BYTES + filter * 4) = inverse(scale);
                publish_all();
                sync_some(2 + 2 * PIPES, MAKERS);
                if (t == 0) {
                    __threadfence();
                    atomicAdd(&filters_ready, 1);
                }
            }
        } else {
            sync_some(1 + PIPES, CONSUMERS);
        }
        if (t == MAKERS) {  // of a warp that makes no units
            while (acquire(&filters_ready) < FILTERS) {}
            publish_all();
            barrier_expect(&filters_here, FETCH_BYTES);
            constexpr int part_bytes = FETCH_BYTES / FETCHES;
#pragma unroll
            for (int i = 0; i < FETCHES; ++i) bulk_load(w + i * part_bytes, bank + i * part_bytes, part_bytes, &filters_here);
            // All blocks have seen all filters ready: the last one makes the counters as the next call needs them.
            __threadfence();
            if (atomicAdd(&blocks_past, 1) == GRID - 1) {
                __threadfence();
                atomicExch(&filters_ready, 0u);
                atomicExch(&blocks_past, 0u);
            }
        }
        __syncwarp();
        barrier_wait(&filters_here, 0);


        // Operands without swizzle, the lower words of their descriptors. Image: pieces of 8 groups of columns, 7 apart (see pool_store).
        const uint32_t a_base = shared_at(halves) >> 4;
        const uint32_t b_base = (W_UNIT >> 4) << 16 | (shared_at(w) >> 4);
        const int q = lane >> 2;
        const int column = warp * 7 + (q & 1 ? 4 : 0) + (q >> 1);
        const bool active = q != 7 && column < POOL;
        float* const mine = out + (lane & 3) * 2 * (POOL * POOL) + column;
        float sum[48], other[48], carry[48];
#pragma unroll
        for (int i = 0; i < 48; ++i) carry[i] = 0.f;
        int held = 0, parity = 0;  // the first of the slots in use, and its phase
        float f = 1.f;             // what the sums of the slots in use are to be multiplied by, less the filters' part
        auto at = [&](int k) { return held + k < HALF ? held + k : held + k - HALF; };
        auto take = [&](int k) {
            barrier_wait(&full[pipe][at(k)], held + k < HALF ? parity : parity ^ 1);
            return unscale[pipe][at(k)];
        };
        auto give_back = [&](int k) {
            __syncwarp();
            if (lane == 0) barrier_arrive(&empty[pipe][at(k)]);
        };
        auto advance = [&](int n) {
            held += n;
            if (held >= HALF) held -= HALF, parity ^= 1;
        };
        // Where the idea rescales sums between products, and bounds the scales for it, the slots are rescaled: a branch
        // without products leaves the registers of those around it alone. Slots multiplied together must be of one scale. Where they differ (rarely), all take the smallest one: exact,
        // but for what is below 2^-24 of half's unit then, nothing beside the largest values that the sums are measured by.
        auto level = [&](int n, float f0, float f1, float f2, float f3) {
            f = fmaxf(fmaxf(f0, f1), fmaxf(f2, f3));
            if (__all_sync(0xffffffffu, f0 == f && f1 == f && f2 == f && f3 == f)) return;
            sync_some(2 + PIPES + pipe, 128);  // all warps' products that read them are done
#pragma unroll 1
            for (int k = 0; k < n; ++k) {
                const float was = k == 0 ? f0 : k == 1 ? f1 : k == 2 ? f2 : f3;
                if (was == f) continue;
                const __half2 ratio = __float2half2_rn(was / f);
                __half2* slot = reinterpret_cast<__half2*>(halves + at(k) * SLOT);
#pragma unroll 1
                for (int i = t & 127; i < SLOT / 4; i += 128) slot[i] = __hmul2(slot[i], ratio);
            }
            publish();
            sync_some(2 + PIPES + pipe, 128);
        };
        // Both consumers' products at once would end at once, and the tensor cores idle while both pool: they take turns,
        // pipe 0 first. Turn i of pipe 0 follows turn i - 1 of pipe 1, turn i of pipe 1 follows turn i of pipe 0.
        int awaited = pipe - 1;                   // a turn of the other one
        const int others = turns_of(stream ^ 1);  // it takes no more: then nothing need be waited for
        auto take_turn = [&] {
            if (awaited >= 0 && awaited < others) barrier_wait(&turn[pipe], awaited & 1);
            ++awaited;
        };
        // Only to who takes one more: each phase is waited for before the next arrival. After turn i, awaited is i in
        // pipe 0, whose turn i pipe 1 awaits in its own turn i, and i + 1 in pipe 1, which pipe 0 awaits in turn i + 1.
        auto pass_turn = [&] {
            if (lane == 0 && awaited < others) barrier_arrive(&turn[pipe ^ 1]);
        };
        // A row's products; if split, the last HANDOVER of them are a group of their own.
        auto issue = [&](float (&sums)[48], int row, bool split) {
            const uint32_t a0 = a_base + (at(row) * SLOT >> 4), a1 = a_base + (at(row + 1) * SLOT >> 4),
                           a2 = a_base + (at(row + 2) * SLOT >> 4);
#pragma unroll
            for (int s = 0; s < STEPS; ++s) {
                if (split && s == STEPS - HANDOVER) products_commit();
                const uint32_t x = (slot_of(s) == 0 ? a0 : slot_of(s) == 1 ? a1 : a2) + a_step(s);
                const uint32_t y = b_base + (s * 2 * W_UNIT >> 4);
                if (s == 0) multiply_first(sums, x, y);
                else multiply(sums, x, y);
            }
            if (split && HANDOVER == 0) products_commit();
            products_commit();
        };
        for (int p = begin; p < end;) {
            const int image = p / POOL, first = p - image * POOL, count = min(POOL - first, end - p);
            float* to = mine + image * (FILTERS * POOL * POOL) + first * POOL;
            p += count;
            const float f0 = take(0), f1 = take(1), f2 = take(2);
            level(3, f0, f1, f2, f2);
            take_turn();
            products_begin();
            issue(sum, 0, true);
            products_wait<1>();
            pass_turn();
            products_wait<0>();
            keep(sum);
            give_back(0);
#pragma unroll
            for (int i = 0; i < 48; ++i) carry[i] = sum[i] * f;
            advance(1);
#pragma unroll 1
            for (int k = 0; k < count; ++k, to += POOL) {
                const float f2 = take(2), f3 = take(3);
                level(4, f, f, f2, f3);
                const float factor = f;
                take_turn();
                products_begin();
                issue(other, 0, false);
                issue(sum, 1, true);
                products_wait<2>();  // the odd row's; the even one's go on
                keep(other);
                give_back(0);
#pragma unroll
                for (int i = 0; i < 48; ++i) carry[i] = fmaxf(carry[i], other[i] * factor);
                products_wait<1>();
                pass_turn();
                products_wait<0>();
                keep(sum);
                give_back(1);
#pragma unroll
                for (int i = 0; i < 48; ++i) {
                    sum[i] *= factor;
                    carry[i] = fmaxf(carry[i], sum[i]);
                }
                pool_store(carry, to, unscales, biases, lane, active);
#pragma unroll
                for (int i = 0; i < 48; ++i) carry[i] = sum[i];
                advance(2);
            }
            give_back(0);
            give_back(1);
            advance(2);
        }
    }
}

extern "C" size_t workspace_bytes(void) { return FETCH_BYTES; }

extern "C" int launch(const float* x, const float* conv_weight, const float* conv_bias, float* out, void* workspace,
                      cudaStream_t stream) {
    cudaFuncSetAttribute(conv_pool, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED);
    unsigned char* bank = static_cast<unsigned char*>(workspace);
    void* arguments[] = {&x, &conv_weight, &conv_bias, &out, &bank};
    // Cooperative: blocks wait for each other's filters.
    cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(conv_pool), dim3(GRID), dim3(THREADS), arguments, SHARED, stream);
    return cudaGetLastError();
}
