"""Read the GPU assembler's report (``-Xptxas -v``)."""

from __future__ import annotations

import re

from cuda_sandbox.report import Resources

_ENTRY = re.compile(r"Compiling entry function '(\S+)' for")
_STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers(.*)")
_SHARED = re.compile(r"(\d+) bytes smem")


def resources(log: str) -> tuple[Resources, ...]:
    """What each ``__global__`` function uses, in the order of the report.

    Shared memory is the static part; spills are the larger of stores and loads.
    """
    result: list[Resources] = []
    function, stack, spill = "", 0, 0
    for line in log.splitlines():
        if entry := _ENTRY.search(line):
            function, stack, spill = plain_name(entry[1]), 0, 0
        elif frame := _STACK.search(line):
            stack, spill = int(frame[1]), max(int(frame[2]), int(frame[3]))
        elif (used := _USED.search(line)) and function:
            shared = _SHARED.search(used[2])
            size = int(shared[1]) if shared else 0
            result.append(Resources(function, int(used[1]), size, stack, spill))
            function = ""
    return tuple(result)


def plain_name(symbol: str) -> str:
    """A function's own name without scopes, arguments and template values; or the symbol itself."""
    position = re.match(r"_ZN?K?", symbol)
    names: list[str] = []
    at = position.end() if position else len(symbol)
    while match := re.match(r"L?(\d+)", symbol[at:]):
        start = at + match.end()
        at = start + int(match[1])
        names.append(symbol[start:at])
        if not symbol.startswith("_ZN"):
            break  # what follows are the arguments' types
    return names[-1] if names and names[-1] else symbol
