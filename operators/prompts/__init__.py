"""The prompts: Jinja2 templates beside this file, and what is known of each kind of device.

``knowledge/LANGUAGE.j2`` is told to whoever writes in that language, ``knowledge/ARCH.j2`` (such as
``sm_90a``) beside it where there is such a file: a new chip is a new file.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jinja2 import Environment

HERE = Path(__file__).parent


def render(name: str, **values: Any) -> str:
    """The template ``NAME.j2`` with ``values``, without white space at its ends.

    Raises jinja2.UndefinedError where the template uses what was not given.
    """
    return _environment().get_template(f"{name}.j2").render(**values).strip()


def knowledge(language: str, arch: str, values: Mapping[str, Any]) -> str:
    """What is known to matter in ``language`` on ``arch``; ``values`` pick what applies.

    Raises jinja2.TemplateNotFound for a language without a file.
    """
    names = [language]
    if arch != language and (HERE / "knowledge" / f"{arch}.j2").is_file():
        names.append(arch)
    return "\n\n".join(render(f"knowledge/{name}", **values) for name in names)


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    # The output is for a model or a person, not HTML: nothing must be escaped.
    return Environment(
        loader=FileSystemLoader(HERE),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
