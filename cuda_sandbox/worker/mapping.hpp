// Maps the judge's memory files into a worker, each between stretches without access.
#pragma once

#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "crash.hpp"

namespace kernelevo {

constexpr size_t GUARD = 1 << 20;  // address space without access on both sides of every tensor

// Where one tensor starts. The judge lays it out so that it ends at the mapping's end.
inline void* map_tensor(const Request& request, int descriptor) {
    size_t whole = GUARD + request.span + GUARD;
    auto* base = static_cast<char*>(
        mmap(nullptr, whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    if (base == MAP_FAILED) fail(FAULT, "no address space left for the tensors");
    int access = request.flags & WRITABLE ? PROT_READ | PROT_WRITE : PROT_READ;
    int kind = MAP_SHARED | MAP_FIXED | MAP_POPULATE;
    if (mmap(base + GUARD, request.span, access, kind, descriptor, 0) == MAP_FAILED)
        fail(FAULT, "a tensor could not be mapped");
    close(descriptor);
    auto low = reinterpret_cast<uintptr_t>(base);
    regions.push_back({request.index, low, low + whole, low + GUARD + request.offset});
    return base + GUARD + request.offset;
}

}  // namespace kernelevo
