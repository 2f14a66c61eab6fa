"""Writes kernels from templates, and reads from a kernel what it was written from."""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

from cuda_sandbox.kernel import Kernel
from cuda_sandbox.signature import Signature
from operators.catalogue.shelf import HERE, Match

if TYPE_CHECKING:
    from jinja2 import Environment

MARKER = re.compile(r"\A// catalogue: (\w+)((?: \w+)*) #([0-9a-f]{8})\n")
TUNABLE = re.compile(r"^(#define +(\w+) +)(\S+)( *// *tune:.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Recipe:
    """What a catalogue kernel is made from: ideas, oldest first, and the tunables' values."""

    keys: tuple[str, ...] = ()
    values: Mapping[str, str] = field(default_factory=dict)


def render(match: Match, signature: Signature, recipe: Recipe) -> Kernel:
    """The kernel of a recipe. A value that is no longer a choice gives way to the default."""

    def tune(name: str, default: object, choices: Sequence[object]) -> str:
        known = [str(choice) for choice in choices]
        value = recipe.values.get(name, str(default))
        value = value if value in known else str(default)
        return f"#define {name} {value}  // tune: {' '.join(known)}"

    template = _environment().get_template(f"{match.family}/kernel.{match.language}.j2")
    body = template.render(
        problem=match.problem,
        keys=frozenset(recipe.keys),
        arguments=", ".join(signature.parameters(match.language)),
        tune=tune,
    )
    names = " ".join((match.family, *recipe.keys))
    source = f"// catalogue: {names} #{_checksum(body)}\n{body}"
    return Kernel(source, match.language, match.book.flags)


def read(match: Match, kernel: Kernel) -> Recipe | None:
    """The recipe behind a kernel; None if another hand wrote or changed it."""
    found = MARKER.match(kernel.source)
    if found is None or found[1] != match.family or kernel.language != match.language:
        return None
    keys = tuple(found[2].split())
    if not set(keys) <= match.book.by_key.keys():
        return None
    if _checksum(kernel.source[found.end() :]) != found[3]:
        return None
    return Recipe(keys, {name: value for _, name, value, _ in TUNABLE.findall(kernel.source)})


def _checksum(body: str) -> str:
    """Of everything but the tunables' values, so that tuning leaves a kernel ours."""
    blanked = TUNABLE.sub(r"\1\4", body)
    return f"{zlib.crc32(blanked.encode()):08x}"


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    # The output is C++ for a compiler, not HTML: nothing must be escaped.
    return Environment(
        loader=FileSystemLoader(HERE),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
