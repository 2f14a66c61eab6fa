"""What the extensions that a module has built call in PyTorch and in libraries of mathematics.

Read from the files themselves, by the judge: what calls PyTorch's own kernels directly never goes
through its dispatcher, so no operator is seen.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from pathlib import Path

import torch

from cuda_sandbox.elf import Symbols, read_symbols
from fitness.module import libraries

_LENGTH = re.compile(r"\d+")
_BLAS = re.compile(
    r"(?:cblas_|lapacke_|mkl_|dnnl_|cublas|cudnn|cusparse|cusolver|cufft)\w+"
    r"|[sdcz](?:gemm|gemv|symm|symv|syrk|trmm|trsm|ger|dot|axpy|scal|nrm2|asum|getr[fs]|potrf"
    r"|ge(?:sv|qrf|sdd|ev))\w{0,3}_",
    re.IGNORECASE,
)
_ILLEGIBLE = Symbols(frozenset(), frozenset(), ())
_ET_DYN, _EM_CUDA = b"\3\0", b"\xbe\0"
_LOADERS = {"dlopen", "dlsym", "dlvsym"}
_HELPERS = re.compile(r"(?:resize|check|can|is|get|set|has|expand|infer|check|wrap)_?\w*|[A-Z]\w*")
"""Functions of at::native and the like that prepare a call, and classes."""


def own(folder: Path) -> tuple[str, ...]:
    """The names of the shared objects that were built in ``folder``."""
    return tuple(path.name for path, _ in _built(folder))


def foreign(folder: Path) -> tuple[str, ...]:
    """Functions of PyTorch and of libraries, called by what was built in ``folder``, that compute.

    Also the functions that find others at run time, but for Triton's own launchers.
    """
    found = []
    for path, symbols in _built(folder):
        if not symbols.undefined:
            found.append(f"{path.name} (without symbols)")
        found += [name for one in sorted(symbols.undefined) if (name := computing(one))]
        found += libraries.mathematical(lib for lib in symbols.needed if "torch" not in lib)
        if "extensions" in path.relative_to(folder).parts:
            found += sorted(symbols.undefined & _LOADERS)
    return tuple(dict.fromkeys(found))


def computing(symbol: str) -> str:
    """``at::cpu::mm`` for the symbol of such a function; empty where it does not compute."""
    if _BLAS.fullmatch(symbol):
        return symbol
    parts = _components(symbol)
    if len(parts) < 2 or parts[0] != "at":
        return ""
    name = parts[2] if parts[1] == "_ops" and len(parts) > 2 else parts[-1]
    inside = parts[1] in ("_ops", "native")
    inside |= any("blas" in part for part in parts[1:-1])
    known = name in _operators() or (inside and not _HELPERS.fullmatch(name))
    return "::".join(parts) if known and not libraries.is_harmless(name) else ""


def _built(folder: Path) -> Iterator[tuple[Path, Symbols]]:
    """The shared objects. One without legible symbols calls what cannot be told."""
    for path in sorted(folder.rglob("*")):
        if path.is_symlink() or not path.is_file() or not _is_shared(path):
            continue
        try:
            yield path, read_symbols(path)
        except ValueError:
            yield path, _ILLEGIBLE


def _is_shared(path: Path) -> bool:
    """Whether the system would load it: neither an object file nor a GPU's binary."""
    with path.open("rb") as file:
        head = file.read(20)
    return head[:4] == b"\x7fELF" and head[16:18] == _ET_DYN and head[18:20] != _EM_CUDA


def _components(symbol: str) -> list[str]:
    """``["at", "cpu", "mm"]`` of ``_ZN2at3cpu2mmE...``; empty for other kinds of names.

    Of a method's or template's name as much as comes before its parameters.
    """
    if not (match := re.match(r"_ZN[VK]*", symbol)):
        return []
    rest, parts = symbol[match.end() :], []
    while length := _LENGTH.match(rest):
        end = length.end() + int(length[0])
        parts.append(rest[length.end() : end])
        rest = rest[end:]
    return parts


@functools.cache
def _operators() -> frozenset[str]:
    """The names of PyTorch's operators, without overloads."""
    names = torch._C._dispatch_get_all_op_names()
    return frozenset(n[6:].partition(".")[0] for n in names if n.startswith("aten::"))
