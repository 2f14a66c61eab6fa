"""Whether an answer can be used, told before it is taken in: the readers of the author, aloud."""

from __future__ import annotations

from cuda_sandbox.errors import UserError
from cuda_sandbox.kernel import Kernel
from operators.writing import code, ideas
from operators.writing.patches import PatchFailed

IDEAS = "ideas"  # the purpose of a request that no kernel answers


class Unreadable(UserError):
    """An answer cannot be used; the message says why and what to do."""


def check(purpose: str, text: str, language: str, parents: tuple[Kernel, ...]) -> None:
    """Raise Unreadable unless ``text`` answers a request of that ``purpose``.

    ``parents`` are the kernels of the request, the one that edits apply to first; none for a port.
    """
    if purpose == IDEAS:
        if not ideas.read(text, "author"):
            raise Unreadable(
                'no ideas found: answer with JSON such as {"ideas": [{"title": "...", '
                '"detail": "...", "category": "memory access"}]}'
            )
        return
    parent = parents[0] if parents else None
    try:
        kernel = code.exactly(text, language, parent)
    except code.NoKernel as reason:
        edits = " or search/replace blocks" if parent else ""
        raise Unreadable(
            f"{reason}: answer with the complete source file, alone or in one code block{edits}"
        ) from reason
    except PatchFailed as reason:
        raise Unreadable(f"{reason}. Correct the block, or answer with the source") from reason
    if code.breaks_off(text):
        raise Unreadable(
            "the answer ends within a code block: if that is all of it, close it with ```"
        )
    if (whole := code.kernels(text)) > 1:
        raise Unreadable(
            f"the answer holds {whole} complete kernels: leave the one that counts in a code block"
        )
    if parent is not None and kernel.source == parent.source:
        raise Unreadable("the answer is the kernel as it was: nothing is changed in it")
