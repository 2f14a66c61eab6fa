// Tells the judge what went wrong when a candidate faults: signal, and where in which tensor.
#pragma once

#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#include <vector>

#include "protocol.hpp"
#include "seccomp.hpp"

namespace kernelevo {

struct Region {
    uint32_t index;          // position among launch's arguments
    uintptr_t low, high;     // the mapping, its guard pages included
    uintptr_t begin;         // where the tensor's bytes start
};
inline std::vector<Region> regions;

inline const Region* region_at(uintptr_t address) {
    for (const Region& region : regions)
        if (address >= region.low && address < region.high) return &region;
    return nullptr;
}

// Whether the faulting access was a write; unknown counts as a read.
inline bool was_write(const void* context) {
#ifdef __x86_64__
    return static_cast<const ucontext_t*>(context)->uc_mcontext.gregs[REG_ERR] & 2;
#else
    (void)context;
    return false;
#endif
}

inline void on_crash(int signal_number, siginfo_t* info, void* context) {
    Reply reply = make_reply(CRASHED, signal_number, -1);
    if (signal_number == SIGSEGV || signal_number == SIGBUS) {
        auto address = reinterpret_cast<uintptr_t>(info->si_addr);
        if (const Region* region = region_at(address)) {
            reply.a = region->index;
            reply.b = static_cast<int64_t>(address - region->begin);
        }
        set_text(reply, was_write(context) ? "write" : "read");
    } else if (signal_number == SIGSYS) {
        set_text(reply, system_call_name(info->si_syscall));
    }
    send_reply(reply);
    _exit(128 + signal_number);
}

inline void catch_crashes() {
    static char stack[1 << 16];  // a stack overflow leaves no room on the stack itself
    stack_t alternative{};
    alternative.ss_sp = stack, alternative.ss_size = sizeof stack;
    sigaltstack(&alternative, nullptr);
    struct sigaction action{};
    action.sa_sigaction = on_crash;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESETHAND;
    for (int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGSYS})
        sigaction(number, &action, nullptr);
}

}  // namespace kernelevo
