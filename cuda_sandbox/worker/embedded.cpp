// The jail, the crash handler and the mapping of tensors for a worker in another language, which
// loads this as a shared library. Called in the order in which they stand here.

#include <stdint.h>
#include <string.h>

#include <string>
#include <vector>

#include "candidate.hpp"
#include "mapping.hpp"

using namespace kernelevo;

namespace {

// Paths in one text, each ended by a line feed.
std::vector<std::string> lines(const char* text) {
    std::vector<std::string> found;
    for (const char* end; (end = strchr(text, '\n')); text = end + 1) found.emplace_back(text, end);
    return found;
}

}  // namespace

extern "C" {

// To be called before anything else. `driver`: what libraries ask of the system without need fails
// quietly; otherwise whoever makes a forbidden call is named and ended.
void embedded_prepare(int socket, const char* cpus, int driver) {
    static Options options;
    control = socket;
    options.cpus = numbers(cpus);
    driver_here = driver != 0;
    prepare(options);
}

// Shuts the jail for good; answers a mask of Layer.
uint32_t embedded_confine(uint64_t memory, uint64_t files, const char* read, const char* write) {
    Confinement confinement;
    confinement.memory = memory, confinement.files = files, confinement.strict = false;
    confinement.read = lines(read), confinement.write = lines(write);
    return confine(confinement);
}

// Which request is being answered, should the process crash over it.
void embedded_serial(uint32_t serial) { serial_now = serial; }

void* embedded_map(uint32_t index, int writable, uint64_t offset, uint64_t span, int descriptor) {
    Request request{};
    request.index = index;
    request.flags = writable ? uint32_t{WRITABLE} : 0u;
    request.offset = offset, request.span = span;
    return map_tensor(request, descriptor);
}

}
