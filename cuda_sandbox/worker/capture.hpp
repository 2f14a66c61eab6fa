// Capture one call of a CUDA candidate and hold the graph against the rules of the interface.
#pragma once

#include <cuda_runtime.h>

#include <string>
#include <vector>

#include "candidate.hpp"

namespace kernelevo {

inline bool is_fault(cudaError_t error) {
    switch (error) {
        case cudaErrorIllegalAddress:
        case cudaErrorMisalignedAddress:
        case cudaErrorIllegalInstruction:
        case cudaErrorHardwareStackError:
        case cudaErrorInvalidPc:
        case cudaErrorInvalidAddressSpace:
        case cudaErrorAssert:
        case cudaErrorLaunchFailure:
            return true;
        default:
            return false;
    }
}

// What to do about the errors that authors meet most.
inline const char* advice(cudaError_t error) {
    switch (error) {
        case cudaErrorStreamCaptureUnsupported:
            return "; launch must not allocate, free or synchronise";
        case cudaErrorStreamCaptureImplicit:
            return "; launch used the default stream: use the stream it was given";
        case cudaErrorStreamCaptureUnjoined:
            return "; a stream that forked from the given one must join it again";
        case cudaErrorNoKernelImageForDevice:
            return "; the object was compiled for another chip";
        default:
            return "";
    }
}

inline std::string describe(cudaError_t error) {
    return std::string(cudaGetErrorName(error)) + ": " + cudaGetErrorString(error) + advice(error);
}

// Every CUDA error ends the worker, with the error's name and text.
inline void check(cudaError_t error, const char* what) {
    if (error == cudaSuccess) return;
    std::string text = std::string(what) + ": " + describe(error);
    fail(is_fault(error) ? FAULT : LAUNCH_ERROR, text.c_str());
}

inline const char* node_name(cudaGraphNodeType type) {
    switch (type) {
        case cudaGraphNodeTypeHost: return "a host function";
        case cudaGraphNodeTypeMemAlloc: return "an allocation";
        case cudaGraphNodeTypeMemFree: return "a deallocation";
        case cudaGraphNodeTypeGraph: return "another graph";
        case cudaGraphNodeTypeConditional: return "a conditional";
        case cudaGraphNodeTypeWaitEvent:
        case cudaGraphNodeTypeEventRecord: return "an external event";
        default: return "an operation that is no kernel, memset or device copy";
    }
}

inline bool on_device(const void* pointer) {
    cudaPointerAttributes attributes{};
    return cudaPointerGetAttributes(&attributes, pointer) == cudaSuccess &&
           attributes.type == cudaMemoryTypeDevice;
}

inline bool copies_on_device(cudaGraphNode_t node) {
    cudaMemcpy3DParms copy{};
    if (cudaGraphMemcpyNodeGetParams(node, &copy) != cudaSuccess) return false;
    return !copy.srcArray && !copy.dstArray && on_device(copy.srcPtr.ptr) &&
           on_device(copy.dstPtr.ptr);
}

// Whether a kernel asks for its lines to stay in the L2 across calls, past the flush.
inline bool persists(cudaGraphNode_t node) {
    cudaLaunchAttributeValue value{};
    if (cudaGraphKernelNodeGetAttribute(node, cudaLaunchAttributeAccessPolicyWindow, &value)) {
        cudaGetLastError();
        return false;
    }
    const cudaAccessPolicyWindow& window = value.accessPolicyWindow;
    return window.num_bytes > 0 && (window.hitProp == cudaAccessPropertyPersisting ||
                                    window.missProp == cudaAccessPropertyPersisting);
}

// How much of the L2 is set aside for data that outlasts a flush; 0 on chips without such a part.
inline size_t carve_out() {
    size_t carved = 0;
    if (cudaDeviceGetLimit(&carved, cudaLimitPersistingL2CacheSize) != cudaSuccess) {
        cudaGetLastError();
        return 0;
    }
    return carved;
}
inline size_t usual_carve_out = 0;  // before there is a candidate: drivers have defaults of their own

inline void check_carve_out() {
    if (carve_out() != usual_carve_out)
        fail(LAUNCH_ERROR, "L2 persistence: launch set part of the L2 aside; not allowed");
}

// Only kernels, memsets, device-to-device copies and empty nodes may be in a graph.
inline size_t check_nodes(cudaGraph_t graph) {
    size_t count = 0;
    check(cudaGraphGetNodes(graph, nullptr, &count), "reading the captured graph");
    if (count == 0) fail(LAUNCH_ERROR, "launch enqueued nothing on the stream it was given");
    std::vector<cudaGraphNode_t> nodes(count);
    check(cudaGraphGetNodes(graph, nodes.data(), &count), "reading the captured graph");
    for (cudaGraphNode_t node : nodes) {
        cudaGraphNodeType type;
        check(cudaGraphNodeGetType(node, &type), "reading the captured graph");
        if (type == cudaGraphNodeTypeKernel && persists(node))
            fail(LAUNCH_ERROR, "L2 persistence: launch asks for data to outlast the flush; "
                               "not allowed");
        if (type == cudaGraphNodeTypeKernel || type == cudaGraphNodeTypeMemset ||
            type == cudaGraphNodeTypeEmpty)
            continue;
        if (type == cudaGraphNodeTypeMemcpy) {
            if (copies_on_device(node)) continue;
            fail(LAUNCH_ERROR, "launch enqueued a copy from or to host memory; not allowed");
        }
        std::string text = std::string("launch enqueued ") + node_name(type) + "; not allowed";
        fail(LAUNCH_ERROR, text.c_str());
    }
    return count;
}

struct Captured {
    cudaGraphExec_t executable = nullptr;
    size_t nodes = 0;
};

inline Captured instantiate(cudaGraph_t graph, cudaStream_t stream) {
    Captured captured;
    captured.nodes = check_nodes(graph);
    check(cudaGraphInstantiate(&captured.executable, graph, 0), "instantiating the graph");
    check(cudaGraphUpload(captured.executable, stream), "uploading the graph");
    check(cudaStreamSynchronize(stream), "uploading the graph");
    return captured;
}

inline void check_launch(int code, cudaError_t pending) {
    if (code) {
        std::string text = "launch returned " + std::to_string(code);
        auto error = static_cast<cudaError_t>(code);
        if (code > 0 && std::string(cudaGetErrorName(error)) != "unrecognized error code")
            text += " (" + describe(error) + ")";
        fail(LAUNCH_ERROR, text.c_str());
    }
    check(pending, "a call inside launch failed");
}

// Global mode: an unsafe call such as cudaMalloc breaks the capture from any thread. The stream is
// a blocking one, so that work on the null stream is an error and not silently left out.
inline Captured capture(void* launch, std::vector<void*>& arguments, cudaStream_t stream) {
    cudaGetLastError();
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "starting the capture");
    int code = guarded([&] { return call(launch, arguments); });
    cudaError_t pending = cudaGetLastError();
    cudaGraph_t graph = nullptr;
    cudaError_t ended = cudaStreamEndCapture(stream, &graph);
    check_launch(code, pending);
    check_carve_out();
    check(ended, "launch cannot be captured (it may only enqueue work on its own stream)");
    if (!graph) fail(LAUNCH_ERROR, "launch cannot be captured: it ended the capture itself");
    return instantiate(graph, stream);
}

}  // namespace kernelevo
