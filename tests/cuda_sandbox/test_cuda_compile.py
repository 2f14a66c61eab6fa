"""Compiling CUDA needs nvcc and no device."""

from __future__ import annotations

import pytest

from cuda_sandbox import ptxas
from cuda_sandbox.backend import find
from cuda_sandbox.backends.cuda import code_for
from cuda_sandbox.compiler import Compiler
from cuda_sandbox.cuda_names import unneeded_headers
from cuda_sandbox.kernel import Kernel
from cuda_sandbox.report import Status
from cuda_sandbox.signature import Role, Signature, TensorSpec

needs_nvcc = pytest.mark.skipif(bool(find("cuda").missing()), reason=find("cuda").missing())

SIGNATURE = Signature(
    "relu",
    (TensorSpec("x", "float32", (1000,), Role.INPUT),),
    (TensorSpec("out", "float32", (1000,), Role.OUTPUT),),
)
SOURCE = """
namespace mine {
__global__ void relu(const float* x, float* out) {
    __shared__ float tile[256];
    int i = blockIdx.x * 256 + threadIdx.x;
    tile[threadIdx.x] = i < X_SIZE ? x[i] : 0;
    __syncthreads();
    if (i < X_SIZE) out[i] = fmaxf(tile[threadIdx.x], 0);
    // more
}
}
int launch(const float* x, float* out, void* workspace, cudaStream_t stream) {
    mine::relu<<<(X_SIZE + 255) / 256, 256, 0, stream>>>(x, out);
    return cudaGetLastError();
}
"""


@needs_nvcc
def test_a_kernel_compiles_for_an_l40s_anywhere(compiler: Compiler) -> None:
    report = compiler.submit(Kernel(SOURCE, "cuda"), SIGNATURE, "sm_89").result()
    assert (report.status, report.reason) == (Status.OK, "")
    assert len(report.resources) == 1
    assert report.resources[0].function == "relu"
    assert report.resources[0].shared_bytes >= 1024
    assert report.resources[0].registers > 0


@needs_nvcc
def test_instructions_of_one_chip_need_that_chip(compiler: Compiler) -> None:
    source = SOURCE.replace("// more", 'asm volatile("wgmma.fence.sync.aligned;");')
    plain = compiler.submit(Kernel(source, "cuda"), SIGNATURE, "sm_89").result()
    assert plain.status is Status.COMPILE_ERROR
    exact = compiler.submit(Kernel(source, "cuda"), SIGNATURE, "sm_90").result()
    assert exact.status is Status.OK


@needs_nvcc
def test_allocating_and_cublas_are_rejected_by_name(compiler: Compiler) -> None:
    source = SOURCE.replace("return cuda", "cudaMalloc(&workspace, 64); return cuda")
    report = compiler.submit(Kernel(source, "cuda"), SIGNATURE, "sm_90a").result()
    assert report.status is Status.REJECTED
    assert report.reason == (
        "the kernel calls cudaMalloc, which is not allowed: "
        "launch must not allocate; use workspace_bytes()"
    )


@needs_nvcc
def test_half_types_wmma_and_the_tma_helper_are_there(compiler: Compiler) -> None:
    source = """
    __global__ void k(const float* x, float* out, const __grid_constant__ CUtensorMap map) {
        nvcuda::wmma::fragment<nvcuda::wmma::accumulator, 16, 16, 16, float> c;
        nvcuda::wmma::fill_fragment(c, __half2float(__float2half(x[0])));
        out[0] = c.x[0] + __bfloat162float(__float2bfloat16(x[1]));
    }
    int launch(const float* x, float* out, void* workspace, cudaStream_t stream) {
        CUtensorMap map;
        uint64_t dims[2] = {32, 32}, strides[1] = {128};
        uint32_t box[2] = {32, 8}, steps[2] = {1, 1};
        int code = kernelevo_tensor_map_tiled(
            &map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, workspace, dims, strides, box, steps,
            CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
            CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
        if (code) return code;
        k<<<1, 32, 0, stream>>>(x, out, map);
        return cudaGetLastError();
    }
    """
    report = compiler.submit(Kernel(source, "cuda"), SIGNATURE, "sm_90a").result()
    assert (report.status, report.reason) == (Status.OK, "")


@pytest.mark.parametrize(
    ("source", "few"),
    [
        ("float f(float x) { return x; }", True),
        ("half f(float x);", False),
        ("auto y = __hadd2(a, b);", False),
        ("nvcuda::wmma::fragment<int> f;", False),
        ("// half in a comment", True),
        ("#define P(a, b) a##b", False),
    ],
)
def test_large_headers_are_left_out_only_where_nothing_of_them_is_named(source, few) -> None:
    macros = unneeded_headers(source, SIGNATURE.header("cuda"))
    assert ("KERNELEVO_NO_HALF" in macros) is few


def test_a_half_tensor_keeps_the_half_types() -> None:
    signature = Signature("t", (TensorSpec("x", "float16", (2,), Role.INPUT),), ())
    assert unneeded_headers("int i;", signature.header("cuda")) == ["KERNELEVO_NO_MMA"]


@pytest.mark.parametrize(
    ("arch", "chip"), [("sm_89", "89"), ("sm_90", "90a"), ("sm_90a", "90a"), ("sm_100", "100a")]
)
def test_chips_with_instructions_of_their_own_get_the_suffix(arch: str, chip: str) -> None:
    assert code_for(arch) == ["-gencode", f"arch=compute_{chip},code=sm_{chip}"]


def test_a_wrong_architecture_says_how_to_write_it() -> None:
    with pytest.raises(ValueError, match="write it as sm_89 or sm_90a"):
        code_for("hopper")


PTXAS = """\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '_ZN4mine4reluEPKfPf' for 'sm_90a'
ptxas info    : Function properties for _ZN4mine4reluEPKfPf
    48 bytes stack frame, 44 bytes spill stores, 40 bytes spill loads
ptxas info    : Used 255 registers, used 1 barriers, 1024 bytes smem, 48 bytes cumulative stack
ptxas info    : Compiling entry function 'plain' for 'sm_90a'
ptxas info    : Used 8 registers, used 0 barriers
"""


def test_the_assemblers_report_becomes_resources() -> None:
    first, second = ptxas.resources(PTXAS)
    assert (first.function, first.registers, first.shared_bytes) == ("relu", 255, 1024)
    assert (first.stack_bytes, first.spill_bytes) == (48, 44)
    assert (second.function, second.registers, second.spill_bytes) == ("plain", 8, 0)


def test_a_functions_name_is_told_from_its_arguments() -> None:
    assert ptxas.plain_name("_Z6matmul14CUtensorMap_stS_P6__half") == "matmul"
    assert ptxas.plain_name("_ZN5inner4deepEPf14CUtensorMap_st") == "deep"
    assert ptxas.plain_name("_ZL3addIfEvPT_") == "add"
    assert ptxas.plain_name("plain") == "plain"
