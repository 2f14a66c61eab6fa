"""Certify a kernel, or a run's winner: what anybody can repeat on another machine."""

from __future__ import annotations

import json
import shlex
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cuda_sandbox.errors import UserError
from evo.cli._view import json_option, opened, print_json, print_lines

if TYPE_CHECKING:
    from cuda_sandbox.kernel import Kernel
    from fitness.certificate import Terms
    from fitness.evaluation import Demand, Evaluation

CERTIFIED, NOT_CERTIFIED, WRONG_CALL = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Candidate:
    """What is to be certified: a kernel for a task, beside its parents.

    ``earlier`` is the certificate to compare with, ``threads`` those of the CPU.
    """

    task_name: str
    task_source: str
    kernel: Kernel
    demand: Demand
    device: str
    rivals: Mapping[str, Kernel]
    earlier: dict[str, Any] | None = None
    threads: int | None = None


@click.command()
@click.argument("target", metavar="RUN|TASK")
@click.argument("kernel", metavar="[ID|KERNEL]", required=False)
@click.option("--device", help="cpu, cuda or cuda:N (by the kernel's language, if not given).")
@click.option("--tier", type=click.Choice(["fp32", "tf32", "half"]), help="Default: fp32.")
@click.option("--tolerance", type=float, help="Instead of a tier: the largest max|y-t|/rms(t).")
@click.option("--flag", "flags", multiple=True, help="A compiler flag for the kernel; repeatable.")
@click.option("--own-kernels", is_flag=True, help="Turn a .py away that lets a library compute.")
@click.option(
    "--parent",
    "parents",
    multiple=True,
    type=click.Path(path_type=Path),
    help="A kernel file to be timed in the same sitting; repeatable.",
)
@click.option(
    "--sanitizer-seconds",
    "seconds",
    type=click.FloatRange(min=0, min_open=True, max=7200),
    help="What each sanitizer may take; default 120, or what the run says.",
)
@click.option(
    "--earlier", type=click.Path(path_type=Path), help="A certificate (JSON) to compare with."
)
@click.option("-o", "output", type=click.Path(path_type=Path), help="Write the certificate here.")
@json_option
def command(
    target: str,
    kernel: str | None,
    device: str | None,
    tier: str | None,
    tolerance: float | None,
    flags: tuple[str, ...],
    own_kernels: bool,
    parents: tuple[Path, ...],
    seconds: float | None,
    earlier: Path | None,
    output: Path | None,
    as_json: bool,
) -> None:
    """Certify the winner of RUN (or its kernel ID), or KERNEL against TASK.

    Hidden inputs, sanitizers, repeatability, and times beside its parents and PyTorch in every
    mode, taken in turns. Anybody can repeat it elsewhere: the same checks, the figures of that
    device. It is compared with the run's own certificate, with --earlier, or with what -o
    replaces. The run itself is not changed.

    Exit code 0: certified, 1: not certified, 2: the call itself is wrong.

    Example: kernelevo certify configs/tasks/softmax.py my_softmax.cu -o certificate.json
    """
    asked = Asked(target, kernel, device, tier, tolerance, flags, own_kernels, parents, seconds)
    try:
        document = compared(asked, earlier, output)
    except (UserError, click.ClickException) as error:
        if not as_json:
            raise
        message = error.message if isinstance(error, click.ClickException) else str(error)
        print_json({"status": None, "error": message})
        raise click.exceptions.Exit(WRONG_CALL) from error
    if as_json:
        print_json(document)
    else:
        print_lines(_lines(document))
    accepted = document["verdict"] == "certified"
    raise click.exceptions.Exit(CERTIFIED if accepted else NOT_CERTIFIED)


@dataclass(frozen=True, slots=True)
class Asked:
    """The command's arguments, but for what is done with the certificate."""

    target: str
    kernel: str | None
    device: str | None
    tier: str | None
    tolerance: float | None
    flags: tuple[str, ...]
    own_kernels: bool
    parents: tuple[Path, ...]
    seconds: float | None

    def words(self) -> str:
        """The call that repeats this one."""
        words = ["kernelevo", "certify", self.target, *filter(None, [self.kernel])]
        named = {
            "--device": self.device,
            "--tier": self.tier,
            "--tolerance": self.tolerance,
            "--sanitizer-seconds": self.seconds,
        }
        words += [str(word) for pair in named.items() if pair[1] is not None for word in pair]
        words += [f"--flag={flag}" for flag in self.flags]
        words += ["--own-kernels"] if self.own_kernels else []
        return shlex.join([*words, *(f"--parent={path}" for path in self.parents)])


def compared(asked: Asked, earlier: Path | None, output: Path | None) -> dict[str, Any]:
    """The certificate, compared with an earlier one where there is one, and written if wanted."""
    from fitness.certificate import SANITIZER_S, Terms, compare, read

    if Path(asked.target).suffix == ".py":
        candidate, configured = from_files(Path(asked.target), asked), SANITIZER_S
    else:
        candidate, configured = from_run(asked.target, asked)
    known = read(earlier) if earlier else candidate.earlier or _replaced(output)
    found = certified(candidate, Terms(asked.seconds or configured, asked.words(), _version()))
    document = dict(found.certificate or {})
    if known:
        document["comparison"] = compare(known, document)
    if output:
        output.write_text(_text(document), encoding="utf-8")
    return document


def from_files(task: Path, asked: Asked) -> Candidate:
    """A kernel file against a task file. Raises UsageError where one is missing."""
    from evo.cli.eval import Call, read_demand, read_kernel

    if not task.is_file():
        raise click.UsageError(f"there is no task file {task}")
    if asked.kernel is None:
        raise click.UsageError(f"name the kernel's file too: kernelevo certify {task} KERNEL")
    call = Call(
        task=task,
        kernel=Path(asked.kernel),
        device=asked.device,
        tier=asked.tier,
        tolerance=asked.tolerance,
        flags=asked.flags,
        arch=None,
        certify=True,
        own_kernels=asked.own_kernels,
    )
    found, device = read_kernel(call)
    names = ["parent"] if len(asked.parents) == 1 else [path.name for path in asked.parents]
    rivals = {
        name: read_kernel(replace(call, kernel=path))[0]
        for name, path in zip(names, asked.parents, strict=True)
    }
    source = task.read_text(encoding="utf-8")
    return Candidate(task.stem, source, found, read_demand(call), device, rivals)


def from_run(run: str, asked: Asked) -> tuple[Candidate, float]:
    """A run's kernel, the winner if none is named, and the run's limit for sanitizers.

    Raises a UserError where there is no such run or kernel, UsageError for options of files.
    """
    from evo.config import restore

    if any(
        (asked.tier, asked.tolerance is not None, asked.flags, asked.own_kernels, asked.parents)
    ):
        raise click.UsageError("a run says itself what it demands: give --device at most")
    with opened(run) as (store, view):
        one = view.individual(asked.kernel or "winner")
        config = restore(view.info.config, view.info.name)
        parents = [view.by_id[name] for name in one.birth.parents if name in view.by_id]
        sound = [parent for parent in parents if parent.fitness.valid]
        verdict = store.certificate(one.id)
    task, demand = view.info.task, view.info.demand
    device = asked.device or ("cpu" if one.kernel.language == "cpp" else "cuda")
    names = ("parent", "other parent")
    rivals = {name: each.kernel for name, each in zip(names, sound, strict=False)}
    earlier = dict(verdict.certificate) if verdict and verdict.certificate else None
    found = Candidate(
        task.name, task.source, one.kernel, demand, device, rivals, earlier, config.cpu.threads
    )
    return found, config.certification.sanitizer_seconds


def certified(candidate: Candidate, terms: Terms) -> Evaluation:
    """The certifying verdict. Raises a UserError where task or device cannot be used."""
    from cuda_sandbox.compiler import Compiler
    from evo.cli.eval import ready
    from fitness.certify import certify
    from fitness.hardware import require
    from fitness.judge import Judge

    require(candidate.device)
    with tempfile.TemporaryDirectory(prefix="kernelevo-") as folder, Compiler() as compiler:
        task = Path(folder, f"{candidate.task_name}.py")
        task.write_text(candidate.task_source, encoding="utf-8")
        judge = Judge(
            task,
            candidate.demand,
            candidate.device,
            compiler=compiler,
            threads=candidate.threads,
        )

        def built(kernel: Kernel) -> Any:
            return kernel, ready(judge, kernel)

        try:
            rivals = {name: built(kernel) for name, kernel in candidate.rivals.items()}
            return certify(judge, built(candidate.kernel), rivals, terms)
        finally:
            judge.close()


def _replaced(output: Path | None) -> dict[str, Any] | None:
    """The certificate that is about to be replaced, if the file holds one."""
    from fitness.certificate import NoCertificate, read

    if output is None or not output.is_file():
        return None
    try:
        return read(output)
    except NoCertificate:
        return None


def _lines(document: dict[str, Any]) -> list[str]:
    from evo.report.certificate import certificate_lines, comparison_lines

    lines = certificate_lines(document)
    if "comparison" in document:
        lines += comparison_lines(document["comparison"])
    return lines


def _text(document: dict[str, Any]) -> str:
    from evo.report.plain import finite

    return json.dumps(finite(document), indent=1, allow_nan=False) + "\n"


def _version() -> str:
    from evo import __version__

    return f"kernelevo {__version__}"
