// A seccomp filter in hand-written BPF: what a kernel in a worker may ask of the operating system.
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <vector>

namespace kernelevo {

#if defined(__x86_64__)
constexpr uint32_t ARCHITECTURE = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr uint32_t ARCHITECTURE = AUDIT_ARCH_AARCH64;
#else
#error "the worker's seccomp filter knows x86-64 and aarch64 only"
#endif

struct SystemCall {
    int number;
    const char* name;
};

#define CALL(name) {__NR_##name, #name},
// Never needed by a kernel, each a way out or a way to other processes.
inline const SystemCall FORBIDDEN[] = {
    CALL(execve) CALL(execveat)
#ifdef __NR_fork
    CALL(fork) CALL(vfork)
#endif
    CALL(socket) CALL(socketpair) CALL(connect) CALL(bind) CALL(listen) CALL(accept) CALL(accept4)
    CALL(ptrace) CALL(process_vm_readv) CALL(process_vm_writev) CALL(mount) CALL(umount2)
    CALL(unshare) CALL(setns) CALL(bpf) CALL(perf_event_open) CALL(keyctl) CALL(add_key)
    CALL(request_key) CALL(kexec_load) CALL(init_module) CALL(finit_module) CALL(chroot)
    CALL(pivot_root) CALL(userfaultfd) CALL(open_by_handle_at) CALL(shmget) CALL(shmat)
    CALL(msgget) CALL(semget) CALL(mq_open) CALL(setuid) CALL(setgid) CALL(setresuid)
    CALL(setresgid) CALL(capset) CALL(reboot) CALL(swapon) CALL(acct) CALL(quotactl)
    CALL(symlinkat) CALL(linkat) CALL(mkdirat) CALL(mknodat) CALL(unlinkat) CALL(renameat2)
    CALL(fchmodat) CALL(fchownat) CALL(truncate) CALL(setpriority) CALL(sched_setscheduler)
    {425, "io_uring_setup"}, {426, "io_uring_enter"}, {427, "io_uring_register"},
    {424, "pidfd_send_signal"}, {434, "pidfd_open"}, {438, "pidfd_getfd"},
    {428, "open_tree"}, {429, "move_mount"}, {430, "fsopen"},
};

// What is enough to compute on the CPU, threads included.
inline const SystemCall ALLOWED[] = {
    CALL(read) CALL(write) CALL(readv) CALL(writev) CALL(pread64) CALL(close) CALL(lseek)
    CALL(fstat) CALL(statx) CALL(newfstatat) CALL(faccessat) CALL(readlinkat) CALL(fcntl)
#ifdef __NR_stat
    CALL(stat) CALL(lstat) CALL(access) CALL(readlink) CALL(time) CALL(arch_prctl) CALL(poll)
#endif
    CALL(mmap) CALL(munmap) CALL(mprotect) CALL(mremap) CALL(madvise) CALL(brk) CALL(mincore)
    CALL(rt_sigprocmask) CALL(rt_sigreturn) CALL(sigaltstack)
    CALL(futex) CALL(set_robust_list) CALL(set_tid_address) CALL(rseq) CALL(membarrier)
    CALL(sched_yield) CALL(sched_getaffinity) CALL(sched_setaffinity) CALL(sched_getparam)
    CALL(sched_getscheduler) CALL(nanosleep) CALL(clock_nanosleep) CALL(clock_gettime)
    CALL(clock_getres) CALL(gettimeofday) CALL(times) CALL(getrusage) CALL(getrandom)
    CALL(getpid) CALL(gettid) CALL(getuid) CALL(geteuid) CALL(getgid) CALL(getegid) CALL(getcpu)
    CALL(uname) CALL(sysinfo) CALL(recvmsg) CALL(restart_syscall) CALL(exit) CALL(exit_group)
    CALL(seccomp)
};
#undef CALL

class Filter {
  public:
    // Instructions are written in the order they run; every rule ends by returning or falls through.
    explicit Filter(uint32_t punishment) : punishment_(punishment) {
        load(offsetof(seccomp_data, arch));
        add(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0);
        give(SECCOMP_RET_KILL_PROCESS);
        load(offsetof(seccomp_data, nr));
#ifdef __x86_64__
        add(BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 0, 1);  // the x32 calling convention
        give(SECCOMP_RET_KILL_PROCESS);
#endif
    }

    void rule(int number, uint32_t verdict) {
        add(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1);
        give(verdict);
    }
    // This call is `verdict` if any of `bits` is set in an argument, else `otherwise`.
    void rule_bits(int number, int argument, uint32_t bits, uint32_t verdict, uint32_t otherwise) {
        add(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 4);
        load(offsetof(seccomp_data, args) + 8 * argument);
        add(BPF_JMP | BPF_JSET | BPF_K, bits, 0, 1);
        give(verdict);
        give(otherwise);
    }
    // This call is allowed if an argument's low half is from `low` to `high`, else `otherwise`.
    void rule_between(int number, int argument, uint32_t low, uint32_t high, uint32_t otherwise) {
        add(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 5);
        load(offsetof(seccomp_data, args) + 8 * argument);
        add(BPF_JMP | BPF_JGE | BPF_K, low, 0, 2);
        add(BPF_JMP | BPF_JGT | BPF_K, high, 1, 0);
        give(SECCOMP_RET_ALLOW);
        give(otherwise);
    }
    void rule_equal(int number, int argument, uint32_t value, uint32_t otherwise) {
        rule_between(number, argument, value, value, otherwise);
    }
    void give(uint32_t verdict) { add(BPF_RET | BPF_K, verdict, 0, 0); }

    uint32_t punishment() const { return punishment_; }

    bool install() {
        sock_fprog program{static_cast<unsigned short>(code_.size()), code_.data()};
        return syscall(__NR_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0;
    }

  private:
    void load(size_t offset) { add(BPF_LD | BPF_W | BPF_ABS, static_cast<uint32_t>(offset), 0, 0); }
    void add(uint16_t op, uint32_t value, uint8_t yes, uint8_t no) {
        code_.push_back({op, yes, no, value});
    }
    std::vector<sock_filter> code_;
    uint32_t punishment_;
};

inline void forbid(Filter& filter) {
    const uint32_t punishment = filter.punishment();
    const uint32_t self = static_cast<uint32_t>(getpid());
    for (const SystemCall& call : FORBIDDEN) filter.rule(call.number, punishment);
    filter.rule_bits(__NR_clone, 0, CLONE_THREAD, SECCOMP_RET_ALLOW, punishment);
    filter.rule(435, SECCOMP_RET_ERRNO | ENOSYS);  // clone3: libc falls back to clone
    filter.rule(437, SECCOMP_RET_ERRNO | ENOSYS);  // openat2
    filter.rule_equal(__NR_kill, 0, self, punishment);
    filter.rule_equal(__NR_tgkill, 0, self, punishment);
    filter.rule(__NR_tkill, punishment);
    // A handler would run when a worker that stood still goes on, before any clock does. Two
    // signals are the thread library's own.
    filter.rule_between(__NR_rt_sigaction, 0, 32, 33, punishment);
}

// Files can only be opened for reading; nothing but the listed calls works.
inline void allow_little(Filter& filter) {
    constexpr uint32_t writing = O_WRONLY | O_RDWR | O_CREAT | O_TRUNC | (O_TMPFILE & ~O_DIRECTORY);
    const uint32_t denied = SECCOMP_RET_ERRNO | EACCES;
    filter.rule_bits(__NR_openat, 2, writing, denied, SECCOMP_RET_ALLOW);
#ifdef __NR_open
    filter.rule_bits(__NR_open, 1, writing, denied, SECCOMP_RET_ALLOW);
#endif
    filter.rule(__NR_ioctl, SECCOMP_RET_ERRNO | ENOTTY);
    filter.rule_equal(__NR_prctl, 0, PR_SET_NAME, SECCOMP_RET_ERRNO | EPERM);
    filter.rule_equal(__NR_prlimit64, 2, 0, SECCOMP_RET_ERRNO | EPERM);
    for (const SystemCall& call : ALLOWED) filter.rule(call.number, SECCOMP_RET_ALLOW);
    filter.give(SECCOMP_RET_ERRNO | ENOSYS);
}

// Forbidden calls raise SIGSYS: crash.hpp says what becomes of them. strict (cpp): nothing but what
// is listed works. Otherwise (cuda) the rest is allowed, since the driver's own needs differ from
// version to version.
inline bool install_filter(bool strict) {
    Filter filter(SECCOMP_RET_TRAP);
    forbid(filter);
    if (strict) {
        allow_little(filter);
    } else {
        filter.rule_equal(__NR_prlimit64, 2, 0, SECCOMP_RET_ERRNO | EPERM);
        filter.give(SECCOMP_RET_ALLOW);
    }
    return filter.install();
}

inline bool opens_a_file(int number) {
#ifdef __NR_open
    if (number == __NR_open) return true;
#endif
    return number == __NR_openat;
}

// From now on (a candidate is loaded) no file is opened any more: libraries do so at their start.
// This filter is the last.
inline bool forbid_files() {
    Filter filter(SECCOMP_RET_TRAP);
    filter.rule(__NR_openat, SECCOMP_RET_TRAP);
#ifdef __NR_open
    filter.rule(__NR_open, SECCOMP_RET_TRAP);
#endif
    filter.rule(__NR_seccomp, SECCOMP_RET_TRAP);
    filter.give(SECCOMP_RET_ALLOW);
    return filter.install();
}

inline const char* system_call_name(int number) {
    for (const SystemCall& call : FORBIDDEN)
        if (call.number == number) return call.name;
    if (opens_a_file(number)) return "open";
    if (number == __NR_rt_sigaction) return "rt_sigaction";
    if (number == __NR_seccomp) return "seccomp";
    return number == __NR_clone ? "clone" : number == __NR_kill ? "kill" : "signal or clone";
}

}  // namespace kernelevo
