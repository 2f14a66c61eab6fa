"""The kernel out of an answer: a complete source, or edits of the parent."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from itertools import islice

from cuda_sandbox.kernel import Kernel
from operators.writing import patches
from operators.writing.json_text import values
from operators.writing.text import LONGEST_SOURCE, clean, shortened

_FENCED = re.compile(r"^[ \t]*```[^\n`]*\n(.*?)^[ \t]*```[ \t]*$", re.DOTALL | re.MULTILINE)
_UNCLOSED = re.compile(r"^[ \t]*```[^\n`]*\n(.*)\Z", re.DOTALL | re.MULTILINE)
_FENCE = re.compile(r"^[ \t]*```", re.MULTILINE)
_FLAGS = re.compile(r"\A(?:\s*//[^\n]*\n){0,3}?\s*//[ \t]*flags:[ \t]*([^\n]*)")
_IDEA = re.compile(r"^[\s>*#_-]*idea[*_]*\s*:[\s*_]*(?P<text>\S.*?)[*_]*$", re.I | re.MULTILINE)
_LAUNCH = re.compile(r"\bint\s+launch\s*\(")
MENTIONS = 100  # of launch, that are looked at in a block
_SOURCE_KEYS = ("source", "kernel", "code")


class NoKernel(Exception):
    """There is no kernel in an answer; the message says what was looked for."""


def read(text: str, language: str, parent: Kernel | None = None) -> Kernel:
    """The kernel that an answer holds: edits of ``parent``, if there is one, or a whole source.

    Flags are those that the source names on its first lines, else the parent's. Edits that do not
    fit give a kernel that fails to compile and says why. Raises NoKernel.
    """
    try:
        return exactly(text, language, parent)
    except patches.PatchFailed as failure:
        assert parent is not None
        return _unapplied(str(failure), text, parent)


def exactly(text: str, language: str, parent: Kernel | None = None) -> Kernel:
    """As `read`, but raises PatchFailed too."""
    text = _unwrapped(clean(text))
    edits = patches.blocks(text) if parent is not None else []
    if parent is not None and edits:
        return _kernel(patches.apply(parent.source, edits), language, parent)
    return _kernel(_source(text), language, parent)


def _unapplied(complaint: str, answer: str, parent: Kernel) -> Kernel:
    """A kernel whose compiler's error is the complaint.

    It holds the edits as a comment, so that whoever mends it knows what was meant.
    """
    meant = clean(answer)[: LONGEST_SOURCE // 4].replace("*/", "* /")
    error = shortened(complaint, 300).replace("\\", "/")
    source = (
        f"#error {json.dumps(error)}\n"
        f"/* The edits that were to be made to the kernel below:\n{meant}\n*/\n{parent.source}"
    )
    return Kernel(source, parent.language, parent.flags)


def breaks_off(text: str) -> bool:
    """Whether an answer ends within a code block, as one does that was cut off."""
    return len(_FENCE.findall(clean(text))) % 2 == 1


def kernels(text: str) -> int:
    """How many different complete kernels an answer without edits holds; `read` takes the last."""
    text = _unwrapped(clean(text))
    return 0 if patches.blocks(text) else len(set(_whole(_FENCED.findall(text))))


def idea_line(text: str) -> str:
    """What an answer says after ``Idea:`` before its code; empty if it does not."""
    match = _IDEA.search(clean(text).partition("```")[0])
    return match["text"].strip().rstrip(".") if match else ""


def _unwrapped(text: str) -> str:
    """The text inside, where an answer is a JSON object that holds the source as a string."""
    if text.lstrip()[:1] != "{":
        return text
    value = next(values(text), None)
    inner = [value.get(key) for key in _SOURCE_KEYS] if isinstance(value, dict) else []
    found = (clean(one) for one in inner if isinstance(one, str))
    return next(found, text)


def _source(text: str) -> str:
    """The last large block that defines ``launch``; without blocks all of the text."""
    found: list[str] = _FENCED.findall(text)
    if not found and (cut := _UNCLOSED.search(text)):
        found = [cut[1]]  # the answer was cut off, or forgot the end
    candidates = found or [text]
    if whole := _whole(candidates):
        return whole[-1]
    if found:
        raise NoKernel("no code block of the answer defines launch")
    raise NoKernel("the answer holds no code block and is no source file: nothing defines launch")


def _whole(blocks: Sequence[str]) -> list[str]:
    """Those that define ``launch``, without drafts and excerpts, which are shorter."""
    defining = [one for one in blocks if _defines_launch(one)]
    large = max(map(len, defining), default=0) / 2
    return [one for one in defining if len(one) >= large]


def _defines_launch(text: str) -> bool:
    for match in islice(_LAUNCH.finditer(text), MENTIONS):
        body, end = (text.find(sign, match.end()) for sign in "{;")
        if body >= 0 and (end < 0 or body < end):
            return True
    return False


def _kernel(source: str, language: str, parent: Kernel | None) -> Kernel:
    if len(source) > LONGEST_SOURCE:
        raise NoKernel(f"the source is longer than {LONGEST_SOURCE} characters")
    if not source.endswith("\n"):
        source += "\n"
    named = _FLAGS.match(source)
    inherited = parent.flags if parent else ()
    flags = tuple(named[1].split()) if named else inherited
    return Kernel(source, language, flags)
