// The jail that a worker puts itself into before it loads a candidate: it cannot be left again.
// Layers: no_new_privs, rlimits, Landlock (where the kernel has it), a seccomp filter.
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "seccomp.hpp"

namespace kernelevo {

enum Layer : uint32_t { NO_NEW_PRIVS = 1, RLIMITS = 2, LANDLOCK = 4, SECCOMP = 8 };

struct Confinement {
    uint64_t memory = 0;              // RLIMIT_AS in bytes; 0: none (CUDA reserves huge ranges)
    uint64_t output = 1 << 16;        // RLIMIT_FSIZE: bounds what is printed
    uint64_t files = 64;              // RLIMIT_NOFILE
    std::vector<std::string> read;    // what Landlock lets be read
    std::vector<std::string> write;   // and written: device nodes
    bool strict = true;               // seccomp: a list of what is allowed, not of what is not
};

inline bool limit(__rlimit_resource resource, uint64_t value) {
    rlimit both{value, value};
    return setrlimit(resource, &both) == 0;
}

inline bool apply_limits(const Confinement& c) {
    signal(SIGXFSZ, SIG_IGN);  // too much output is dropped, not punished
    bool good = limit(RLIMIT_CORE, 0) & limit(RLIMIT_FSIZE, c.output);
    good &= limit(RLIMIT_NOFILE, c.files);
    if (c.memory) good &= limit(RLIMIT_AS, c.memory);
    return good;
}

// Landlock by hand: older kernel headers lack parts of it.
namespace landlock {

struct Ruleset {
    uint64_t files, network, scoped;
};
struct __attribute__((packed)) PathRule {
    uint64_t allowed;
    int32_t parent;
};
constexpr uint64_t EXECUTE = 1, WRITE_FILE = 2, READ_FILE = 4, READ_DIR = 8;
constexpr uint64_t TRUNCATE = 1 << 14, IOCTL_DEV = 1 << 15;

inline long version() { return syscall(444, nullptr, 0, 1); }

inline uint64_t known_rights(long abi) {
    if (abi >= 5) return (1 << 16) - 1;
    return abi >= 3 ? (1 << 15) - 1 : abi == 2 ? (1 << 14) - 1 : (1 << 13) - 1;
}

inline void allow(long ruleset, const std::string& path, uint64_t rights) {
    int fd = open(path.c_str(), O_PATH | O_CLOEXEC);
    if (fd < 0) return;
    struct stat status;
    fstat(fd, &status);
    if (!S_ISDIR(status.st_mode)) rights &= EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV;
    PathRule rule{rights, fd};
    syscall(445, ruleset, 1, &rule, 0);
    close(fd);
}

// `readable` and `writable` are the rights for the two lists of paths.
inline bool restrict_to(const Confinement& c, uint64_t readable, uint64_t writable) {
    long abi = version();
    if (abi < 1) return false;
    uint64_t rights = known_rights(abi);
    Ruleset wanted{rights, abi >= 4 ? 3u : 0u, abi >= 6 ? 3u : 0u};
    size_t size = abi >= 6 ? 24 : abi >= 4 ? 16 : 8;
    long ruleset = syscall(444, &wanted, size, 0);
    if (ruleset < 0) return false;
    for (const auto& path : c.read) allow(ruleset, path, rights & readable);
    for (const auto& path : c.write) allow(ruleset, path, rights & (readable | writable));
    bool good = syscall(446, ruleset, 0) == 0;
    close(static_cast<int>(ruleset));
    return good;
}

// A worker starts no programs, and only writes to device nodes.
inline bool restrict_worker(const Confinement& c) {
    return restrict_to(c, READ_FILE | READ_DIR, WRITE_FILE | IOCTL_DEV);
}

// A compiler starts other programs and makes files in its own folders.
inline bool restrict_program(const Confinement& c) {
    return restrict_to(c, READ_FILE | READ_DIR | EXECUTE, ~IOCTL_DEV);
}

}  // namespace landlock

// Closes what the process inherited, except stdio and one descriptor.
inline void close_others(int keep) {
    syscall(436, 3, keep - 1, 0);  // close_range
    syscall(436, keep + 1, ~0u, 0);
}

// Applies every layer the kernel offers, and says which: a mask of Layer.
inline uint32_t confine(const Confinement& c) {
    uint32_t layers = 0;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0) layers |= NO_NEW_PRIVS;
    if (apply_limits(c)) layers |= RLIMITS;
    if (landlock::restrict_worker(c)) layers |= LANDLOCK;
    if (install_filter(c.strict)) layers |= SECCOMP;
    return layers;
}

}  // namespace kernelevo
