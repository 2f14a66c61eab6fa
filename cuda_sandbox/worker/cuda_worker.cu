// The worker for `cuda` candidates: opens the judge's buffers over CUDA IPC, captures one call of
// launch for each set of them, and from then on replays the graphs.

#include <cuda_runtime.h>

#include <algorithm>
#include <vector>

#include "candidate.hpp"
#include "capture.hpp"
#include "tensor_map.hpp"

using namespace kernelevo;

namespace {

constexpr uint32_t IN_FLIGHT = 32;  // calls queued before we wait: the device must never be idle
constexpr uint64_t SPIN_NS = 20000, SPIN_NS_PER_NODE = 2000;

__global__ void nothing() {}

// Keeps the stream busy, so that events and graph behind it are queued before the clock starts.
__global__ void spin(uint64_t nanoseconds) {
    uint64_t start, now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(start));
    do asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
    while (now - start < nanoseconds);
}

struct Clock {
    cudaStream_t stream = nullptr;
    std::vector<cudaEvent_t> before, after;
    void* flushed = nullptr;
    size_t flush_bytes = 0;
};

Clock make_clock() {
    Clock clock;
    int l2 = 0;
    check(cudaSetDevice(0), "opening the device");
    check(cudaDeviceGetAttribute(&l2, cudaDevAttrL2CacheSize, 0), "reading the device");
    check(cudaStreamCreate(&clock.stream), "creating a stream");
    clock.flush_bytes = 2 * static_cast<size_t>(std::max(l2, 1 << 20));
    clock.before.resize(IN_FLIGHT), clock.after.resize(IN_FLIGHT);
    for (auto* events : {&clock.before, &clock.after})
        for (cudaEvent_t& event : *events) check(cudaEventCreate(&event), "creating an event");
    return clock;
}

Captured capture_nothing(cudaStream_t stream) {
    cudaGraph_t graph = nullptr;
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "capturing nothing");
    nothing<<<1, 1, 0, stream>>>();
    check(cudaStreamEndCapture(stream, &graph), "capturing nothing");
    return instantiate(graph, stream);
}

void* open_buffer(const Request& request) {
    cudaIpcMemHandle_t handle;
    static_assert(sizeof handle == sizeof request.handle);
    memcpy(&handle, request.handle, sizeof handle);
    void* base = nullptr;
    check(cudaIpcOpenMemHandle(&base, handle, cudaIpcMemLazyEnablePeerAccess), "opening a tensor");
    return static_cast<char*>(base) + request.offset;
}

// `nodes` are those of the kernel, also where `graph` is that of nothing: so both wait as long.
void enqueue(const Clock& clock, const Captured& graph, size_t nodes, uint32_t slot, bool flush) {
    static unsigned char value = 0;
    if (flush)
        check(cudaMemsetAsync(clock.flushed, ++value, clock.flush_bytes, clock.stream), "flushing");
    spin<<<1, 1, 0, clock.stream>>>(SPIN_NS + SPIN_NS_PER_NODE * nodes);
    check(cudaEventRecord(clock.before[slot], clock.stream), "recording an event");
    check(cudaGraphLaunch(graph.executable, clock.stream), "launching the graph");
    check(cudaEventRecord(clock.after[slot], clock.stream), "recording an event");
}

// Calls one right behind the other, for the judge's clock: nothing else is queued, nothing is told.
void run_bare(const Clock& clock, const std::vector<Captured>& sets, const Request& request) {
    if (sets.empty()) fail(LAUNCH_ERROR, "asked to run before anything was captured");
    for (uint32_t i = 0; i < request.calls; ++i) {
        const Captured& graph = sets[(request.index + i) % sets.size()];
        check(cudaGraphLaunch(graph.executable, clock.stream), "launching the graph");
    }
    check(cudaStreamSynchronize(clock.stream), "running the kernel");
    send_done();
}

// Call i replays the graph of set (request.index + i), over and over in a circle.
void run(Clock& clock, const std::vector<Captured>& sets, const Captured* other,
         const Request& request) {
    bool flush = request.flags & FLUSH;
    if (sets.empty()) fail(LAUNCH_ERROR, "asked to run before anything was captured");
    if (flush && !clock.flushed) check(cudaMalloc(&clock.flushed, clock.flush_bytes), "flushing");
    std::vector<double> times;
    while (times.size() < request.calls) {
        uint32_t count = std::min<uint32_t>(IN_FLIGHT, request.calls - times.size());
        for (uint32_t slot = 0; slot < count; ++slot) {
            const Captured& graph = sets[(request.index + times.size() + slot) % sets.size()];
            enqueue(clock, other ? *other : graph, graph.nodes, slot, flush);
        }
        check(cudaStreamSynchronize(clock.stream), "running the kernel");
        for (uint32_t slot = 0; slot < count; ++slot) {
            float ms = 0;
            check(cudaEventElapsedTime(&ms, clock.before[slot], clock.after[slot]), "timing");
            times.push_back(ms);
        }
    }
    fflush(nullptr);
    send_times(times.data(), times.size());
}

}  // namespace

int main(int argc, char** argv) {
    Options options = parse(argc, argv);
    prepare(options);
    Clock clock = make_clock();
    Captured empty = capture_nothing(clock.stream);
    tensor_map_function();
    usual_carve_out = carve_out();
    options.confinement.strict = false;
    driver_here = true;
    uint32_t layers = confine(options.confinement);
    Candidate candidate = guarded([&] { return load(options.object); });
    send_ready(candidate, layers);
    std::vector<Captured> sets;
    std::vector<void*> arguments;
    arguments.reserve(MOST_ARGUMENTS);
    Request request;
    for (int descriptor; receive(request, descriptor);) {
        if (request.op == BUFFER) arguments.push_back(open_buffer(request));
        if (request.op == BIND) {
            arguments.push_back(clock.stream);
            sets.push_back(capture(candidate.launch, arguments, clock.stream));
            arguments.clear();
        }
        // What launch started elsewhere than in the captured stream runs now, perhaps for ever.
        if (request.op == SETTLE) check(cudaDeviceSynchronize(), "work outside of the stream");
        bool bare = request.flags & BARE;
        if (request.op == RUN && bare) run_bare(clock, sets, request);
        if (request.op == RUN && !bare) run(clock, sets, nullptr, request);
        if (request.op == RUN_EMPTY) run(clock, sets, &empty, request);
        if (request.op != RUN && request.op != RUN_EMPTY) send_done();
    }
    _exit(0);
}
