// The worker for `cpp` candidates: maps the judge's memory files, calls launch, times it.

#include <stdint.h>
#include <string.h>

#include <chrono>
#include <vector>

#include "candidate.hpp"
#include "mapping.hpp"

using namespace kernelevo;

namespace {

std::vector<void*> arguments;
std::vector<unsigned char> evicted;

void map_buffer(const Request& request, int descriptor) {
    if (arguments.size() <= request.index) arguments.resize(request.index + 1);
    arguments[request.index] = map_tensor(request, descriptor);
}

// Writes through a buffer larger than the caches.
void evict(size_t bytes) {
    if (evicted.size() != bytes) evicted.resize(bytes);  // at first use: filling it takes long
    static unsigned char value = 0;
    memset(evicted.data(), ++value, evicted.size());
    asm volatile("" : : "r"(evicted.data()) : "memory");
}

double timed_call(void* launch) {
    auto before = std::chrono::steady_clock::now();
    int code = guarded([&] { return call(launch, arguments); });
    auto after = std::chrono::steady_clock::now();
    if (code) {
        std::string text = "launch returned " + std::to_string(code);
        fail(LAUNCH_ERROR, text.c_str());
    }
    return std::chrono::duration<double, std::milli>(after - before).count();
}

int nothing() { return 0; }

void run(const Request& request, void* launch, size_t flush) {
    std::vector<double> times;
    times.reserve(request.calls);
    for (uint32_t i = 0; i < request.calls; ++i) {
        if (request.flags & FLUSH) evict(flush);
        times.push_back(timed_call(launch));
    }
    fflush(nullptr);
    send_times(times.data(), times.size());
}

}  // namespace

int main(int argc, char** argv) {
    Options options = parse(argc, argv);
    prepare(options);
    arguments.reserve(MOST_ARGUMENTS);
    uint32_t layers = confine(options.confinement);
    Candidate candidate = guarded([&] { return load(options.object); });
    if (layers & SECCOMP) forbid_files();
    send_ready(candidate, layers);
    Request request;
    for (int descriptor; receive(request, descriptor);) {
        if (request.op == BUFFER) map_buffer(request, descriptor);
        if (request.op == RUN) run(request, candidate.launch, options.flush);
        if (request.op == RUN_EMPTY) run(request, reinterpret_cast<void*>(nothing), options.flush);
        if (request.op != RUN && request.op != RUN_EMPTY) send_done();
    }
    _exit(0);
}
