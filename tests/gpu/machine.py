"""Prints what `make test-gpu` finds on this machine; exit 1 if the tests cannot run at all."""

from __future__ import annotations

import importlib.metadata
import re
import shutil
import sys
import tomllib
from pathlib import Path

PROJECT = Path(__file__).parents[2] / "pyproject.toml"
TESTS_NEED = ("hypothesis", "pytest")


def requirements() -> list[str]:
    """Names of the distributions that kernelevo and its tests need."""
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    return [re.split(r"[<>=!~; \[]", line)[0] for line in project["dependencies"]] + [*TESTS_NEED]


def version(name: str) -> str | None:
    """The installed version of a distribution, or None."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def main() -> int:
    """Print the interpreter, the packages and the tools; say what lacks."""
    found = {name: version(name) for name in requirements()}
    missing = [name for name, number in found.items() if number is None]
    print(f"python {sys.version.split()[0]} at {sys.executable}")
    print("found: " + ", ".join(f"{name} {number}" for name, number in found.items() if number))
    for tool in ("nvcc", "g++", "compute-sanitizer", "bwrap"):
        print(f"{tool}: {shutil.which(tool) or 'not found'}")
    if missing:
        print(f"missing: {', '.join(missing)}: the tests that import them are skipped")
    if "pytest" in missing or sys.version_info < (3, 11):
        print("without pytest and Python 3.11 no test can run; name another one: PYTHON=...")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
