// What both workers share: the command line, the jail, loading a candidate and calling it.
#pragma once

#include <dlfcn.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>

#include <exception>
#include <utility>
#include <string>
#include <vector>

#include "crash.hpp"
#include "jail.hpp"
#include "protocol.hpp"

namespace kernelevo {

struct Options {
    std::string object;
    uint64_t flush = 0;  // bytes written between calls to empty the caches
    std::vector<int> cpus;
    Confinement confinement;
};

inline std::vector<int> numbers(const char* text) {
    std::vector<int> result;
    for (char* end; *text; text = *end ? end + 1 : end) result.push_back(strtol(text, &end, 10));
    return result;
}

// Arguments are pairs, as cuda_sandbox/sandbox.py makes them: --control 5 --object /kernel.so ...
inline Options parse(int argc, char** argv) {
    Options options;
    for (int i = 1; i + 1 < argc; i += 2) {
        std::string key = argv[i];
        const char* value = argv[i + 1];
        if (key == "--control") control = atoi(value);
        if (key == "--object") options.object = value;
        if (key == "--flush") options.flush = strtoull(value, nullptr, 10);
        if (key == "--cpus") options.cpus = numbers(value);
        if (key == "--memory") options.confinement.memory = strtoull(value, nullptr, 10);
        if (key == "--files") options.confinement.files = strtoull(value, nullptr, 10);
        if (key == "--read") options.confinement.read.push_back(value);
        if (key == "--write") options.confinement.write.push_back(value);
    }
    return options;
}

inline void pin(const std::vector<int>& cpus) {
    if (cpus.empty()) return;
    cpu_set_t set;
    CPU_ZERO(&set);
    for (int cpu : cpus) CPU_SET(cpu, &set);
    sched_setaffinity(0, sizeof set, &set);
}

// First things first: die with the judge, hold no stray descriptors, print by lines.
inline void prepare(const Options& options) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    close_others(control);
    setvbuf(stdout, nullptr, _IOLBF, 1 << 12);
    pin(options.cpus);
    candidate_path = options.object.c_str();
    catch_crashes();
}

struct Candidate {
    void* launch = nullptr;
    size_t workspace = 0;
};

// Loads the candidate: its constructors run here, so the jail must be shut already.
inline Candidate load(const std::string& object) {
    void* library = dlopen(object.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) fail(BAD_OBJECT, dlerror());
    Candidate candidate;
    candidate.launch = dlsym(library, "launch");
    if (!candidate.launch) fail(BAD_OBJECT, "the object defines no function launch");
    auto bytes = reinterpret_cast<size_t (*)()>(dlsym(library, "workspace_bytes"));
    candidate.workspace = bytes ? bytes() : 0;
    return candidate;
}

template <size_t... I>
int call_with(void* function, void* const* arguments, std::index_sequence<I...>) {
    using Function = int (*)(decltype((void)I, (void*)nullptr)...);
    return reinterpret_cast<Function>(function)(arguments[I]...);
}

constexpr size_t MOST_ARGUMENTS = 1024;

// Calls launch with pointers only. A C function does not mind more arguments than it takes: on
// x86-64 and aarch64 the caller passes and removes them. So a few sizes serve every signature.
inline int call(void* function, std::vector<void*>& arguments) {
    size_t count = arguments.size();
    arguments.resize(MOST_ARGUMENTS);
    void* const* data = arguments.data();
    int result = count <= 16   ? call_with(function, data, std::make_index_sequence<16>())
                 : count <= 64 ? call_with(function, data, std::make_index_sequence<64>())
                               : call_with(function, data, std::make_index_sequence<1024>());
    arguments.resize(count);
    return result;
}

// A C++ exception must not look like a fault of ours.
template <typename Body>
auto guarded(Body body) {
    try {
        return body();
    } catch (const std::exception& error) {
        fail(FAULT, (std::string("threw an exception: ") + error.what()).c_str());
    } catch (...) {
        fail(FAULT, "threw an exception");
    }
}

inline void send_ready(const Candidate& candidate, uint32_t layers) {
    Reply reply = make_reply(READY, 0, static_cast<int64_t>(candidate.workspace), layers);
    send_reply(reply);
}

}  // namespace kernelevo
