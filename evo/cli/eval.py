"""Judge one kernel against its task, nothing else."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cuda_sandbox.errors import UserError

if TYPE_CHECKING:
    from cuda_sandbox.compiler import Compiler
    from cuda_sandbox.kernel import Kernel
    from cuda_sandbox.report import CompileReport
    from cuda_sandbox.signature import Signature
    from fitness.evaluation import Demand, Evaluation, Execution
    from fitness.judge import Judge
    from fitness.languages import Language

FIGURES = {  # always there, as nulls where they were not measured
    "precision": ("tier", "error", "reference_error"),
    "time_ms": ("median", "low", "high"),
    "speedup": ("eager", "compile", "graph", "best", "same", "fp32"),
}
ACCEPTED, NOT_ACCEPTED, WRONG_CALL = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Call:
    """The command's arguments."""

    task: Path
    kernel: Path
    device: str | None
    tier: str | None
    tolerance: float | None
    flags: tuple[str, ...]
    arch: str | None
    certify: bool
    own_kernels: bool = False
    baseline: str = "eager"


@click.command()
@click.argument("task", type=click.Path(path_type=Path))
@click.argument("kernel", type=click.Path(path_type=Path))
@click.option("--device", help="cpu, cuda or cuda:N (by the kernel's suffix, if not given).")
@click.option("--tier", type=click.Choice(["fp32", "tf32", "half"]), help="Default: fp32.")
@click.option("--tolerance", type=float, help="Instead of a tier: the largest max|y-t|/rms(t).")
@click.option("--flag", "flags", multiple=True, help="A compiler flag for the kernel; repeatable.")
@click.option("--arch", help="Only compile, for this chip (sm_89 is an L40S); needs no GPU.")
@click.option("--certify", is_flag=True, help="Hidden inputs, sanitizers, interleaved timing too.")
@click.option(
    "--own-kernels",
    is_flag=True,
    help="Turn a .py away that lets PyTorch or a library compute (.cu and .cpp cannot).",
)
@click.option(
    "--baseline",
    type=click.Choice(["eager", "compile", "best"]),
    default="eager",
    help="Measure these of PyTorch's times too, if they are not known yet; default eager.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(
    task: Path,
    kernel: Path,
    device: str | None,
    tier: str | None,
    tolerance: float | None,
    flags: tuple[str, ...],
    arch: str | None,
    certify: bool,
    own_kernels: bool,
    baseline: str,
    as_json: bool,
) -> None:
    """Judge KERNEL (.cu, .cpp, or .py with a ModelNew) against TASK: is it right, and how fast?

    Exit code 0: accepted, 1: not accepted, 2: the call itself is wrong.

    Example: kernelevo eval configs/tasks/softmax.py my_softmax.cu --json
    """
    call = Call(task, kernel, device, tier, tolerance, flags, arch, certify, own_kernels, baseline)
    try:
        found = judged(call)
    except (UserError, click.ClickException) as error:
        if not as_json:
            raise
        message = error.message if isinstance(error, click.ClickException) else str(error)
        click.echo(json.dumps({"status": None, "error": message}))
        raise click.exceptions.Exit(WRONG_CALL) from error
    click.echo(json.dumps(as_record(found)) if as_json else as_text(found))
    raise click.exceptions.Exit(ACCEPTED if found.correct else NOT_ACCEPTED)


def judged(call: Call) -> Evaluation:
    """The verdict. Raises a UserError or ClickException where the call is wrong."""
    from cuda_sandbox.report import Status
    from fitness.errors import TaskError
    from fitness.evaluation import Evaluation
    from fitness.task import describe

    kernel, device = read_kernel(call)
    demand = read_demand(call)
    if not call.task.is_file():
        raise click.UsageError(f"there is no task file {call.task}")
    try:
        description = describe(call.task)
        for remark in description.remarks:  # of how the task is judged
            click.echo(f"note: {remark}", err=True)
        if call.arch:
            return compiled_only(description.signature, kernel, call.arch)
        return on_device(call, kernel, demand, device)
    except TaskError as error:
        return Evaluation(Status.REJECTED, f"task: {error}")


def read_kernel(call: Call) -> tuple[Kernel, str]:
    """The kernel and the device it is for."""
    from cuda_sandbox.kernel import Kernel
    from fitness.languages import of_suffix

    known = of_suffix()
    if call.kernel.suffix not in known:
        endings = " or ".join(sorted(known))
        raise click.UsageError(f"{call.kernel}: the name of a kernel's file must end in {endings}")
    language = known[call.kernel.suffix]
    device = call.device or default_device(language)
    if device.partition(":")[0] not in language.devices:
        where = " or ".join(language.devices)
        raise click.UsageError(
            f"{call.kernel.name} is {language.name} and runs on {where}, not {device}"
        )
    try:
        source = call.kernel.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise click.UsageError(f"{call.kernel} cannot be read as text: {error}") from error
    return Kernel(source, language.name, call.flags), device


def default_device(language: Language) -> str:
    """The kind of device that a language prefers of those that are here."""
    from cuda_sandbox import driver

    here = [kind for kind in language.devices if kind != "cuda" or driver.count()]
    return (*here, *language.devices)[0]


def read_demand(call: Call) -> Demand:
    """The precision demanded."""
    from fitness.evaluation import Demand, Tier

    if call.tier and call.tolerance is not None:
        raise click.UsageError("give --tier or --tolerance, not both")
    try:
        tier = None if call.tolerance is not None else Tier(call.tier or "fp32")
        return Demand(tier, call.tolerance, call.baseline, own_kernels=call.own_kernels)
    except ValueError as error:
        raise click.UsageError(str(error)) from error


def compiled_only(signature: Signature, kernel: Kernel, arch: str) -> Evaluation:
    """The compiler's word alone: ``ok`` says that it compiles, without times or precision."""
    from cuda_sandbox.backend import names
    from cuda_sandbox.compiler import Compiler
    from fitness.evaluation import Evaluation, Seconds

    if kernel.language not in names():
        raise click.UsageError(
            f"--arch: a {kernel.language} is built on the machine that it runs on"
        )
    with Compiler() as compiler:
        report = compiled(compiler, kernel, signature, arch)
    reason = report.reason or f"compiled for {arch}; not run"
    return Evaluation(
        report.status,
        reason,
        seconds=Seconds(report.seconds),
        resources=report.resources,
        log=report.log,
    )


def compiled(compiler: Compiler, kernel: Kernel, signature: Signature, arch: str) -> CompileReport:
    """The compiler's report. Raises UsageError where the architecture or the compiler is none."""
    try:
        return compiler.submit(kernel, signature, arch).result()
    except (ValueError, RuntimeError) as error:
        raise click.UsageError(str(error)) from error


def ready(judge: Judge, kernel: Kernel) -> CompileReport:
    """As `compiled`, for the judge's device and in any language."""
    try:
        return judge.compile(kernel)
    except (ValueError, RuntimeError) as error:
        raise click.UsageError(str(error)) from error


def on_device(call: Call, kernel: Kernel, demand: Demand, device: str) -> Evaluation:
    """Compile, judge and, if asked for, certify."""
    from cuda_sandbox.compiler import Compiler
    from fitness.hardware import require
    from fitness.judge import Judge

    require(device)
    with Compiler() as compiler:
        judge = Judge(call.task, demand, device, compiler=compiler)
        try:
            report = ready(judge, kernel)
            if call.certify:
                from fitness.certify import certify

                return certify(judge, (kernel, report), {})
            return judge.evaluate(kernel, report)
        finally:
            judge.close()


def as_record(found: Evaluation) -> dict[str, Any]:
    """The verdict as JSON values; what was not measured is null."""
    from evo.report.plain import verdict

    record = verdict(found)
    for key, names in FIGURES.items():
        record[key] = {**dict.fromkeys(names), **(record[key] or {})}
    return record


def as_text(found: Evaluation) -> str:
    """The verdict for a person."""
    from evo.result import span

    lines = [f"{found.status.value}{': ' + found.reason if found.reason else ''}"]
    if found.precision:
        lines.append(
            f"precision  {found.precision.tier or 'none'}, error {found.precision.error:.3g} "
            f"(PyTorch's own {found.precision.reference_error:.3g}; worst on "
            f"{found.precision.worst_on})"
        )
    if found.time_ms:
        lines.append(f"time       {span(found.time_ms)}")
        lines += [
            f"{name:<10} {base.time_ms.median:.4g} ms" for name, base in found.baselines.items()
        ]
        lines += [f"speedup    {value:.3f}x over {name}" for name, value in found.speedup.items()]
    if found.roofline_share is not None:
        lines.append(f"roofline   {found.roofline_share:.1%} of {found.roofline_ceiling}")
    if found.bottleneck:
        lines += [f"profile    {line}" for line in found.bottleneck.lines()]
    if found.execution:
        lines += execution_lines(found.execution)
    if found.certificate:
        lines += [f"check      {k}: {v}" for k, v in found.certificate["checks"].items()]
    if found.device:
        lines.append(f"device     {found.device}")
    return "\n".join(lines)


def execution_lines(ran: Execution) -> list[str]:
    """How a module ran, and what ran in one call, by its own process's word."""
    how = {"graph": "a captured call is replayed", "calls": "called anew each time"}[ran.mode]
    lines = [f"module     {how}{f' ({ran.uncaptured})' if ran.uncaptured else ''}"]
    lines.append(f"weights    {ran.weights}")
    if ran.unseen:
        lines.append(f"kernels    not told: {ran.unseen}")
    for name in ran.ran:
        whose = " (PyTorch's or a library's)" if name in ran.foreign else ""
        lines.append(f"ran        {name}{whose}")
    return lines
