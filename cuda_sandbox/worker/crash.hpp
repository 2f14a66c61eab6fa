// Tells the judge what went wrong when a candidate faults: signal, and where in which tensor.
#pragma once

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
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
inline const char* candidate_path = "";
inline bool driver_here = false;  // a CUDA driver lives in this process and asks for what it likes

inline const Region* region_at(uintptr_t address) {
    for (const Region& region : regions)
        if (address >= region.low && address < region.high) return &region;
    return nullptr;
}

// A system call that was stopped, as registers hold it.
struct Stopped {
    ucontext_t* context;

#ifdef __x86_64__
    greg_t* registers() const { return context->uc_mcontext.gregs; }
    bool was_write() const { return registers()[REG_ERR] & 2; }
    const char* path(int number) const {
        bool second = number == __NR_openat;
        return reinterpret_cast<const char*>(registers()[second ? REG_RSI : REG_RDI]);
    }
    void answer(int error) const { registers()[REG_RAX] = -error; }
    // Who called libc's wrapper, if that is where we are: wrappers keep nothing on the stack.
    void* caller() const { return *reinterpret_cast<void**>(registers()[REG_RSP]); }
#else
    bool was_write() const { return false; }  // unknown counts as a read
    const char* path(int) const {
        return reinterpret_cast<const char*>(context->uc_mcontext.regs[1]);
    }
    void answer(int error) const { context->uc_mcontext.regs[0] = -error; }
    void* caller() const { return reinterpret_cast<void*>(context->uc_mcontext.regs[30]); }
#endif
};

// Whether code at `address` is the candidate's: in its object, or in no object at all.
inline bool is_candidate(void* address) {
    Dl_info info{};
    return !dladdr(address, &info) || !info.dli_fname || !strcmp(info.dli_fname, candidate_path);
}

// What libraries look at by themselves, such as the number of CPUs.
inline bool is_harmless(const char* path) {
    for (const char* known : {"/sys/devices/system/", "/proc/self/", "/proc/sys/", "/etc/localtime"})
        if (!strncmp(path, known, strlen(known))) return true;
    return false;
}

// Whether a stopped system call is to fail quietly instead of ending the process.
inline bool excused(const Stopped& stopped, const siginfo_t* info) {
    if (opens_a_file(info->si_syscall)) {
        stopped.answer(ENOENT);
        return is_harmless(stopped.path(info->si_syscall));
    }
    stopped.answer(EPERM);
    return driver_here && !is_candidate(info->si_call_addr) && !is_candidate(stopped.caller());
}

inline void describe_call(Reply& reply, const Stopped& stopped, int number) {
    set_text(reply, system_call_name(number));
    if (opens_a_file(number)) snprintf(reply.text, TEXT, "open of %s", stopped.path(number));
}

inline void on_crash(int signal_number, siginfo_t* info, void* context) {
    Stopped stopped{static_cast<ucontext_t*>(context)};
    if (signal_number == SIGSYS && excused(stopped, info)) return;
    Reply reply = make_reply(CRASHED, signal_number, -1);
    if (signal_number == SIGSEGV || signal_number == SIGBUS) {
        auto address = reinterpret_cast<uintptr_t>(info->si_addr);
        if (const Region* region = region_at(address)) {
            reply.a = region->index;
            reply.b = static_cast<int64_t>(address - region->begin);
        }
        set_text(reply, stopped.was_write() ? "write" : "read");
    } else if (signal_number == SIGSYS) {
        describe_call(reply, stopped, info->si_syscall);
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
    for (int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGSYS}) {
        action.sa_flags = SA_SIGINFO | SA_ONSTACK | (number == SIGSYS ? 0 : SA_RESETHAND);
        sigaction(number, &action, nullptr);
    }
}

}  // namespace kernelevo
