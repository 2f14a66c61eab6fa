"""A request as files, so that nobody has to cut header and parents out of its prompt."""

from __future__ import annotations

from pathlib import Path

from evo.requests.board import Board, Entry
from evo.requests.wording import text
from fitness import languages


def write(board: Board, entry: Entry, folder: Path) -> list[Path]:
    """Write ``request.md``, the interface's ``header.h`` and each parent's source into ``folder``.

    Files of those names are replaced. Raises OSError where they cannot be written.
    """
    ending = languages.find(board.language).suffix
    found = {"request.md": text(board.folder.name, entry), "header.h": board.header}
    found |= {f"{name}{ending}": kernel.source for name, kernel in board.parents(entry).items()}
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in found.items():
        (folder / name).write_text(content.rstrip("\n") + "\n", encoding="utf-8")
    return [folder / name for name in found]
