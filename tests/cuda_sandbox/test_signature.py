from __future__ import annotations

import json
import re

import pytest

from cuda_sandbox.header import identifiers
from cuda_sandbox.signature import Role, Signature, TensorSpec


def spec(name: str, dtype: str = "float32", role: Role = Role.INPUT, *shape: int) -> TensorSpec:
    return TensorSpec(name, dtype, shape, role)


NORM = Signature(
    "LayerNorm",
    (
        spec("x", "float16", Role.INPUT, 16, 64),
        spec("ln.weight", "bfloat16", Role.PARAMETER, 64),
    ),
    (spec("out", "float16", Role.OUTPUT, 16, 64),),
    defines=(("SCALE", "2.5"),),
    notes=("eps = 1e-5",),
)


def test_the_cpp_header_reads_as_documented() -> None:
    assert NORM.header("cpp") == (
        "// LayerNorm\n"
        "// x: float16[16,64], input\n"
        "// ln_weight: bfloat16[64], parameter\n"
        "// out: float16[16,64], output\n"
        "// eps = 1e-5\n"
        "\n"
        "#include <stddef.h>\n"
        "#include <stdint.h>\n"
        "\n"
        "#define X_D0 16\n"
        "#define X_D1 64\n"
        "#define X_SIZE 1024\n"
        "#define LN_WEIGHT_D0 64\n"
        "#define LN_WEIGHT_SIZE 64\n"
        "#define OUT_D0 16\n"
        "#define OUT_D1 64\n"
        "#define OUT_SIZE 1024\n"
        "#define SCALE 2.5\n"
        "\n"
        'extern "C" int launch(const _Float16* x,\n'
        "                      const uint16_t* ln_weight,\n"
        "                      _Float16* out,\n"
        "                      void* workspace);\n"
        'extern "C" size_t workspace_bytes(void);  // optional; 0 if absent\n'
    )


def test_the_cuda_header_has_cuda_types_the_stream_and_the_tma_helper() -> None:
    header = NORM.header("cuda")
    assert "const __half* x" in header
    assert "const __nv_bfloat16* ln_weight" in header
    assert re.search(r"void\* workspace,\s+cudaStream_t stream\);", header)
    assert "kernelevo_tensor_map_tiled(" in header
    assert "#include <mma.h>" in header


def test_an_unknown_language_is_refused_with_those_there_are() -> None:
    with pytest.raises(ValueError, match=r"rust.*cpp, cuda"):
        NORM.header("rust")


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["class", "x"], ("class_", "x")),
        (["x", "X"], ("x", "X_")),
        (["a.b", "a_b"], ("a_b", "a_b_")),
        (["0.weight"], ("_0_weight",)),
        (["workspace", "stream", "launch"], ("workspace_", "stream_", "launch_")),
        (["x", "X_D0"], ("x", "X_D0_")),
        (["out", "out"], ("out", "out_")),
    ],
)
def test_names_become_distinct_identifiers(names: list[str], expected: tuple[str, ...]) -> None:
    assert identifiers(names) == expected


def test_a_define_never_overwrites_a_dimension() -> None:
    tensors = (spec("n", "float32", Role.INPUT, 4),)
    header = Signature("t", tensors, (), defines=(("N_D0", "7"),)).header("cpp")
    assert "#define N_D0 4\n" in header
    assert "#define N_D0_ 7\n" in header


def test_notes_cannot_leave_their_comment() -> None:
    header = Signature("t", (), (), notes=("one\nint evil;", "tail\\")).header("cpp")
    assert "// one\n// int evil;\n// tail\n" in header


def test_two_tensors_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="two tensors of the signature are called 'x'"):
        Signature("t", (spec("x"), spec("x")), ())


def test_a_signature_survives_json() -> None:
    assert Signature.from_dict(json.loads(json.dumps(NORM.to_dict()))) == NORM
