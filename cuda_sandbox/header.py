"""Render a signature as the C++ header that is included before every candidate."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence

from cuda_sandbox.tensor import DTYPES, Role, TensorSpec

_KEYWORDS = frozenset(
    """alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t
    char32_t class compl concept const consteval constexpr constinit const_cast continue co_await
    co_return co_yield decltype default delete do double dynamic_cast else enum explicit export
    extern false float for friend goto if inline int long mutable namespace new noexcept not not_eq
    nullptr operator or or_eq private protected public register reinterpret_cast requires return
    short signed sizeof static static_assert static_cast struct switch template this thread_local
    throw true try typedef typeid typename union unsigned using virtual void volatile wchar_t while
    xor xor_eq""".split()  # noqa: SIM905 - one per line in quotes would hide the list
)
# What the header itself or the standard headers already mean by these names.
_TAKEN = frozenset(
    """launch workspace workspace_bytes stream main half NULL EOF I INFINITY NAN linux unix
    threadIdx blockIdx blockDim gridDim warpSize dim3""".split()  # noqa: SIM905 - as above
)
# NO_HALF and NO_MMA are set by the compiler for sources that name nothing of these headers
# (cuda_names.py): they take half of nvcc's time.
NO_HALF, NO_MMA = "KERNELEVO_NO_HALF", "KERNELEVO_NO_MMA"
_COMMON_INCLUDES = "#include <stddef.h>\n#include <stdint.h>\n"
_INCLUDES = {
    "cpp": _COMMON_INCLUDES,
    "cuda": f"""\
{_COMMON_INCLUDES}#include <cuda.h>
#include <cuda_runtime.h>
#ifndef {NO_HALF}
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#endif
#ifndef {NO_MMA}
#include <mma.h>
#endif
""",
}
_TENSOR_MAP = """\
// TMA descriptors: the arguments and the result are those of cuTensorMapEncodeTiled (cuda.h).
// Call it in launch() and hand the map to the kernel as `const __grid_constant__ CUtensorMap`.
extern "C" int kernelevo_tensor_map_tiled(
    CUtensorMap* map, CUtensorMapDataType type, uint32_t rank, void* address,
    const uint64_t* dims, const uint64_t* strides_in_bytes, const uint32_t* box,
    const uint32_t* element_strides, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
    CUtensorMapL2promotion l2_promotion, CUtensorMapFloatOOBfill oob_fill);
"""
_STREAM = {"cpp": (), "cuda": ("cudaStream_t stream",)}


def identifiers(names: Iterable[str]) -> tuple[str, ...]:
    """C identifiers for tensor names, in order: characters that C does not take become ``_``, and
    a keyword, a name of the interface or a collision gets a trailing ``_``.

    Upper-cased they differ too, since they are the stems of macros; and none equals a macro.
    """
    chosen: list[str] = []
    for name in names:
        candidate = re.sub(r"\W", "_", name, flags=re.ASCII) or "_"
        if candidate[0].isdigit():
            candidate = "_" + candidate
        while candidate in _KEYWORDS | _TAKEN or _clashes(candidate, chosen):
            candidate += "_"
        chosen.append(candidate)
    return tuple(chosen)


def _clashes(name: str, others: list[str]) -> bool:
    """Whether a name or its macros equal those of a name that was chosen before."""
    return any(
        name.upper() == other.upper() or _is_macro(name, other) or _is_macro(other, name)
        for other in others
    )


def _is_macro(name: str, stem: str) -> bool:
    return re.fullmatch(re.escape(stem.upper()) + r"_(D\d+|SIZE)", name) is not None


def render(
    title: str,
    tensors: Sequence[TensorSpec],
    language: str,
    defines: Sequence[tuple[str, str]] = (),
    notes: Sequence[str] = (),
) -> str:
    """The header's text: what the task is, dimensions, numbers, and the prototype.

    Raises:
        ValueError: the header has no form in ``language``.
    """
    if language not in _INCLUDES:
        raise ValueError(
            f"no header for language {language!r}; choose from: {', '.join(_INCLUDES)}"
        )
    named = dict(zip(identifiers(tensor.name for tensor in tensors), tensors, strict=True))
    sections = [
        _comments([title, *itertools.starmap(_describe, named.items()), *notes]),
        _INCLUDES[language],
        _defines(named, defines),
        _TENSOR_MAP if language == "cuda" else "",
        _prototype(tensors, language),
    ]
    return "\n".join(section for section in sections if section)


def _describe(identifier: str, tensor: TensorSpec) -> str:
    shape = ",".join(map(str, tensor.shape))
    return f"{identifier}: {tensor.dtype}[{shape}], {tensor.role}"


def _comments(texts: list[str]) -> str:
    return "".join(f"// {line}\n" for text in texts for line in _safe(text))


def _safe(text: str) -> Iterator[str]:
    """Lines that stay inside a line comment: none ends in a backslash."""
    for line in re.split(r"[\r\n\v\f\x85\u2028\u2029]+", text):
        yield line.rstrip().removesuffix("??/").rstrip("\\ ")


def _defines(named: dict[str, TensorSpec], defines: Sequence[tuple[str, str]]) -> str:
    macros: dict[str, str] = {}
    for identifier, tensor in named.items():
        stem = identifier.upper()
        macros |= {f"{stem}_D{axis}": str(size) for axis, size in enumerate(tensor.shape)}
        macros[f"{stem}_SIZE"] = str(tensor.numel)
    for name, literal in defines:
        macros[_free(name, {*macros, *named})] = literal
    return "".join(f"#define {name} {value}\n" for name, value in macros.items())


def _free(name: str, used: set[str]) -> str:
    """A macro name that is neither used nor a keyword."""
    name = re.sub(r"\W", "_", name, flags=re.ASCII)
    while name in used | _KEYWORDS | _TAKEN:
        name += "_"
    return name


def parameters(tensors: Sequence[TensorSpec], language: str) -> list[str]:
    """The parameters of ``launch``: ``const float* x``, ``float* out``, ``void* workspace``, ..."""
    pointers = [
        f"{'' if tensor.role is Role.OUTPUT else 'const '}"
        f"{DTYPES[tensor.dtype].spelling[language]}* {identifier}"
        for identifier, tensor in zip(
            identifiers(tensor.name for tensor in tensors), tensors, strict=True
        )
    ]
    return [*pointers, "void* workspace", *_STREAM[language]]


def _prototype(tensors: Sequence[TensorSpec], language: str) -> str:
    arguments = ",\n                      ".join(parameters(tensors, language))
    return (
        f'extern "C" int launch({arguments});\n'
        'extern "C" size_t workspace_bytes(void);  // optional; 0 if absent\n'
    )
