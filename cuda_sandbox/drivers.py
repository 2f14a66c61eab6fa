"""The driver programs of certification: they call launch once, on buffers of their own."""

from __future__ import annotations

from collections.abc import Iterator

from cuda_sandbox.signature import Role, Signature
from cuda_sandbox.tensor import DTYPES

_CPP = """\
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern "C" size_t workspace_bytes(void) __attribute__((weak));

static void* scratch(size_t bytes) {
    void* memory = malloc(bytes);  // of exactly this size: one byte too far is found
    memset(memory, 0xff, bytes);
    return memory;
}

static void* input(const char* name, size_t bytes) {
    void* memory = malloc(bytes);
    FILE* file = fopen(name, "rb");
    if (!file || fread(memory, 1, bytes, file) != bytes) exit(97);
    fclose(file);
    return memory;
}

int main() {
    int code = launch(ARGUMENTS,
                      scratch(workspace_bytes ? workspace_bytes() : 0));
    if (code) fprintf(stderr, "launch returned %d\\n", code);
    return code ? 98 : 0;
}
"""
_CUDA = """\
#include <stdio.h>
#include <stdlib.h>

extern "C" size_t workspace_bytes(void) __attribute__((weak));

static void check(cudaError_t error) {
    if (error == cudaSuccess) return;
    fprintf(stderr, "driver: %s: %s\\n", cudaGetErrorName(error), cudaGetErrorString(error));
    exit(98);
}

static void* scratch(size_t bytes) {
    void* memory = nullptr;
    check(cudaMalloc(&memory, bytes ? bytes : 1));
    return memory;
}

static void* input(const char* name, size_t bytes) {
    void* host = malloc(bytes ? bytes : 1);
    FILE* file = fopen(name, "rb");
    if (!file || fread(host, 1, bytes, file) != bytes) exit(97);
    fclose(file);
    void* memory = scratch(bytes);
    check(cudaMemcpy(memory, host, bytes, cudaMemcpyHostToDevice));
    free(host);
    return memory;
}

int main() {
    cudaStream_t stream;
    check(cudaStreamCreate(&stream));
    int code = launch(ARGUMENTS,
                      scratch(workspace_bytes ? workspace_bytes() : 0), stream);
    if (code) fprintf(stderr, "launch returned %d\\n", code);
    check(cudaStreamSynchronize(stream));
    return code ? 98 : 0;
}
"""


def cpp(signature: Signature) -> str:
    """A C++ program that reads ``inputN`` for the N-th argument and calls launch."""
    return _CPP.replace("ARGUMENTS", _arguments(signature, "cpp"))


def cuda(signature: Signature, tensor_map: str) -> str:
    """The same in CUDA; ``tensor_map`` is the definition of the header's TMA helper."""
    return tensor_map + _CUDA.replace("ARGUMENTS", _arguments(signature, "cuda"))


def _arguments(signature: Signature, language: str) -> str:
    return ",\n                      ".join(_expressions(signature, language))


def _expressions(signature: Signature, language: str) -> Iterator[str]:
    for index, tensor in enumerate(signature.tensors):
        kind = DTYPES[tensor.dtype].spelling[language]
        if tensor.role is Role.OUTPUT:
            yield f"({kind}*)scratch({tensor.nbytes})"
        else:
            yield f'(const {kind}*)input("input{index}", {tensor.nbytes})'
