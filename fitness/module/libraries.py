"""Whose kernels ran: the author's own, or PyTorch's and its libraries'."""

from __future__ import annotations

import re
from collections.abc import Iterable

_MEMORY = re.compile(r"Mem(?:cpy|set)\b.*")
"""Copies and fills by the device's copy engine: nobody's kernels."""

_PLUMBING = re.compile(r".*(?:FillFunctor|direct_copy_kernel|CatArrayBatchedCopy).*", re.DOTALL)
"""PyTorch's kernels that only move or fill memory: reported, and never held against a module."""

_LIBRARY = re.compile(
    r".*(?:\bat::|at_cuda_detail|\bc10::|pytorch_flash|fmha_cutlass|cunn_|\bcudnn|cublas|cusparse"
    r"|cusolver|cufft|xmma|cutlass_\d\d_|nvjet_|gemmSN_|gemmk1_|gemv\w*_kernel_val|gemv2[TN]_"
    r"|gemvNSP_|splitKreduce|dot_kernel<|reduce_1Block_kernel|(?:ampere|volta|turing|hopper|maxwell"
    r"|sm\d\d)_\w*(?:gemm|fprop|dgrad|wgrad)|implicit_con|winograd|convolve_\w+gemm|nchwToNhwc"
    r"|nhwcToNchw|bn_(?:fw|bw)_|vectorized_elementwise_kernel|unrolled_elementwise_kernel"
    r"|elementwise_kernel_with_index|reduce_kernel<\d+, \d+, at).*",
    re.DOTALL,
)
"""Names that PyTorch's own kernels and NVIDIA's libraries give. No list of them is complete."""

_MOVING = """
    empty new_empty empty_like empty_strided new_empty_strided zeros zeros_like new_zeros ones
    ones_like new_ones full full_like new_full scalar_tensor fill fill_ zero_ zero copy_ copy
    clone contiguous _to_copy to detach detach_ alias view _unsafe_view reshape view_as
    _reshape_alias as_strided as_strided_ expand expand_as permute transpose transpose_ t t_
    movedim select slice squeeze squeeze_ unsqueeze unsqueeze_ narrow unbind split
    split_with_sizes chunk unfold diagonal flatten unflatten lift_fresh lift resize_ set_
    record_stream is_same_size size stride sym_size sym_stride storage_offset is_pinned
    pin_memory view_as_real view_as_complex _local_scalar_dense item is_contiguous
    resolve_conj resolve_neg
"""
_HARMLESS = frozenset(_MOVING.split())
"""Operators that allocate, look at, move or fill memory; everything else computes."""

_MATHS = re.compile(r"lib(?:mkl|cublas|cudnn|cusparse|cusolver|cufft|openblas|blas|dnnl|torch)\w*")


def computing(operators: Iterable[str]) -> tuple[str, ...]:
    """Those of PyTorch's operators that compute."""
    return tuple(
        name
        for name in operators
        if name.startswith("aten::") and name[6:].partition(".")[0] not in _HARMLESS
    )


def is_harmless(name: str) -> bool:
    """Whether the C++ function of this name, with its overload's behind it, computes nothing."""
    words = name.split("_")
    return any("_".join(words[:count]) in _HARMLESS for count in range(1, len(words) + 1))


def foreign(kernels: Iterable[str]) -> tuple[str, ...]:
    """Those of the device's kernels that are PyTorch's or a library's, and compute."""
    return tuple(name for name in kernels if _LIBRARY.match(name) and not _is_plumbing(name))


def own(kernels: Iterable[str]) -> tuple[str, ...]:
    """Those of the device's kernels that are nobody else's."""
    return tuple(name for name in kernels if not _LIBRARY.match(name) and not _is_plumbing(name))


def mathematical(loads: Iterable[str]) -> tuple[str, ...]:
    """Those libraries, loaded by the candidate itself, that compute."""
    return tuple(name for name in loads if _MATHS.match(name))


def _is_plumbing(name: str) -> bool:
    return bool(_MEMORY.match(name) or _PLUMBING.match(name))
