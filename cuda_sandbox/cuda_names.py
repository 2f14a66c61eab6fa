"""Which of CUDA's large headers a kernel may need, judged by the names it uses."""

from __future__ import annotations

import re

from cuda_sandbox.header import NO_HALF, NO_MMA
from cuda_sandbox.tokens import Kind, tokens

# Generous: a needless header costs a second, a missing one would break an honest kernel.
_HALF = re.compile(r"h\w*|__h\w*|\w*(?:half|bf16|bfloat|fp16|f16|h2|__nv_)\w*|(?:nv|CUDA)\w*")
_MMA = re.compile(r"\w*(?:mma|nvcuda|fragment)\w*")


def unneeded_headers(source: str, header: str) -> list[str]:
    """Macros that leave the half types and wmma out of the generated header where it is safe.

    ``header`` is that header: its prototype may need the half types itself.
    """
    found = list(tokens(source))
    if any(token.text == "##" for token in found):
        return []  # names may be pasted together
    names = {token.text for token in found if token.kind is Kind.NAME}
    if any(_MMA.fullmatch(name) for name in names):
        return []  # mma.h brings the half types along
    half = any(_HALF.fullmatch(name) for name in names) or re.search(
        r"__half\b|__nv_bfloat", header
    )
    return [NO_MMA] if half else [NO_MMA, NO_HALF]
