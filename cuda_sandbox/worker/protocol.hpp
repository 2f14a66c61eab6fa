// Frames between the judge's side and a worker: fixed size, one per packet of a socket pair.
// The same layout is in cuda_sandbox/protocol.py, which knows further codes of workers in Python.
// What a worker says is evidence, never truth.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>

namespace kernelevo {

enum Op : uint32_t { BUFFER = 1, BIND = 2, RUN = 3, RUN_EMPTY = 4, SETTLE = 5 };
enum Flag : uint32_t { WRITABLE = 1, FLUSH = 2, BARE = 4 };

struct Request {
    uint32_t op, serial;
    uint32_t index;  // BUFFER: position among launch's arguments; RUN: the first set of them
    uint32_t flags;
    uint64_t bytes, offset, span;  // BUFFER: the tensor, where it starts, the whole mapping
    uint32_t calls, reserved;      // RUN
    uint8_t handle[64];            // BUFFER on CUDA: the IPC handle
    uint8_t padding[16];
};
static_assert(sizeof(Request) == 128);

enum Kind : uint32_t { READY = 1, DONE = 2, TIMES = 3, FAILED = 4, CRASHED = 5 };
enum Failure : int32_t { LAUNCH_ERROR = 1, FAULT = 2, BAD_OBJECT = 3 };

constexpr size_t TEXT = 224;
constexpr size_t TIMES_EACH = TEXT / sizeof(double);

struct Reply {
    uint32_t kind, serial;
    int32_t code;    // FAILED: a Failure; CRASHED: the signal
    uint32_t count;  // TIMES: how many are in this frame
    int64_t a, b;    // READY: workspace bytes, layers; CRASHED: argument (or -1), byte in it
    union {
        double times[TIMES_EACH];  // ms
        char text[TEXT];
    };
};
static_assert(sizeof(Reply) == 256);

inline int control = -1;          // the socket
inline uint32_t serial_now = 0;   // the request being answered

inline void send_reply(Reply& reply) {
    reply.serial = serial_now;
    if (write(control, &reply, sizeof reply) != sizeof reply) _exit(90);
}

inline Reply make_reply(Kind kind, int32_t code = 0, int64_t a = 0, int64_t b = 0) {
    Reply reply{};
    reply.kind = kind, reply.code = code, reply.a = a, reply.b = b;
    return reply;
}

inline void set_text(Reply& reply, const char* text) {
    strncpy(reply.text, text, TEXT - 1);
}

// Tells of a failure and ends the process: nothing more can be learnt from it.
[[noreturn]] inline void fail(Failure failure, const char* text) {
    Reply reply = make_reply(FAILED, failure);
    set_text(reply, text);
    send_reply(reply);
    _exit(0);
}

inline void send_done() {
    Reply reply = make_reply(DONE);
    send_reply(reply);
}

inline void send_times(const double* times, size_t count) {
    for (size_t i = 0; i < count; i += TIMES_EACH) {
        Reply reply = make_reply(TIMES);
        reply.count = static_cast<uint32_t>(std::min(TIMES_EACH, count - i));
        memcpy(reply.times, times + i, reply.count * sizeof(double));
        send_reply(reply);
    }
}

// The next request, and the file descriptor that came with it (or -1). False: the judge is gone.
inline bool receive(Request& request, int& descriptor) {
    iovec part{&request, sizeof request};
    alignas(cmsghdr) char space[CMSG_SPACE(sizeof(int))];
    msghdr message{};
    message.msg_iov = &part, message.msg_iovlen = 1;
    message.msg_control = space, message.msg_controllen = sizeof space;
    if (recvmsg(control, &message, 0) != sizeof request) return false;
    descriptor = -1;
    cmsghdr* extra = CMSG_FIRSTHDR(&message);
    if (extra && extra->cmsg_type == SCM_RIGHTS) memcpy(&descriptor, CMSG_DATA(extra), sizeof(int));
    serial_now = request.serial;
    return true;
}

}  // namespace kernelevo
