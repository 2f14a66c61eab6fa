"""The ``kernelevo`` command. A command is a file in this folder; its name is the file's name.

Each ``NAME.py`` holds ``command``, a ``click.Command``, and the first line of its docstring is
what ``kernelevo --help`` prints. Help reads that line without importing the file, so that it
answers at once however heavy a command is.
"""

from __future__ import annotations

import errno
import importlib
import re
import traceback
from pathlib import Path
from typing import Any

import click

from cuda_sandbox.errors import UserError
from evo import __version__

FOLDER = Path(__file__).parent
OURS = {"", "cuda_sandbox", "evo", "fitness", "operators"}
NOT_COMMANDS = {"__init__", "main"}
HANDLED_BY_CLICK = (
    click.ClickException,
    click.Abort,
    click.exceptions.Exit,
    BrokenPipeError,
    EOFError,
)
STOPPED = 130
OUR_FAULT = 70  # EX_SOFTWARE: 1 means "kernel not accepted", so a crash needs a code of its own
DISK_ADVICE = "make room there, or let us write there, then call again; what was committed is kept"
DAMAGED = "the file is damaged: take in a pack of it (`kernelevo unpack`), or begin with --new"
DISK_FAULTS = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES}
SQLITE_FAULTS = {  # by SQLite's primary result codes: READONLY, IOERR, CORRUPT, FULL, CANTOPEN
    **dict.fromkeys((8, 10, 13, 14), DISK_ADVICE),
    11: DAMAGED,
}


def first_line(path: Path) -> str:
    """The first line of the docstring at the top of ``path``, without importing it."""
    with path.open(encoding="utf-8") as file:
        opening = re.match(r'\s*r?"""\s*(.*)', file.readline())
    line = opening.group(1) if opening else ""
    return line.removesuffix('"""').replace("``", "").strip().removesuffix(".")


class CommandFolder(click.Group):
    """A group whose commands are the files of this folder, imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  # click's signature
        """The names of the files, sorted, with dashes for underscores."""
        stems = {path.stem for path in FOLDER.glob("*.py")} - NOT_COMMANDS
        return sorted(stem.replace("_", "-") for stem in stems if not stem.startswith("_"))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command's file; None if there is no such file."""
        if cmd_name not in self.list_commands(ctx):
            return None
        module = importlib.import_module(f"evo.cli.{cmd_name.replace('-', '_')}")
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write one line for each command, from its file's docstring."""
        names = self.list_commands(ctx)
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, first_line(FOLDER / f"{name.replace('-', '_')}.py")) for name in names]
            )

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; turn what went wrong into a message and an exit code."""
        try:
            return super().invoke(ctx)
        except HANDLED_BY_CLICK:
            raise
        except KeyboardInterrupt:  # click would end with 1, which is a verdict
            raise Failure("stopped by Ctrl-C", STOPPED) from None
        except Exception as error:
            raise explained(error) from error


def explained(error: Exception) -> Exception:
    """What click shall raise for ``error``: a message, or after a traceback an exit code."""
    if isinstance(error, UserError):
        return Failure(str(error), error.exit_code)
    if isinstance(error, ImportError) and (error.name or "").partition(".")[0] not in OURS:
        return Failure(f"{error}; `kernelevo doctor` says what to install", 2)
    if fault := storage_fault(error):
        return Failure(fault, 2)
    traceback.print_exception(error)
    click.echo("This is a fault of kernelevo: please report the lines above.", err=True)
    return click.exceptions.Exit(OUR_FAULT)


def storage_fault(error: Exception) -> str:
    """What to say where the disk or a run's file is at fault, not the program; else empty."""
    if isinstance(error, OSError) and error.errno in DISK_FAULTS:
        return f"{error}: {DISK_ADVICE}"
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # the rest of it says more closely where
    return f"run.sqlite: {error}: {SQLITE_FAULTS[code]}" if code in SQLITE_FAULTS else ""


class Failure(click.ClickException):
    """A message for stderr with an exit code of its own."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code  # type: ignore[misc]  # click says ClassVar, and reads self


@click.group(
    cls=CommandFolder,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Start with: kernelevo run configs/quickstart.yaml",
)
@click.version_option(__version__, prog_name="kernelevo")
def main() -> None:
    """Evolve GPU kernels: compiled, judged against PyTorch, selected, improved, certified."""


if __name__ == "__main__":
    main(prog_name="kernelevo")
