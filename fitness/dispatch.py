"""The base of our dispatch modes: watch or change every operation that runs inside."""

from __future__ import annotations

from torch.utils._python_dispatch import TorchDispatchMode


class Mode(TorchDispatchMode):
    """A dispatch mode that leaves torch's compiler alone.

    By default the first operation inside a mode imports all of ``torch._dynamo``, to switch it off
    there: some seconds for nothing, as we never compile inside.
    """

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False
