"""An answer tried before it is given: read as the run will read it, compiled in all its tunings."""

from __future__ import annotations

from collections.abc import Iterator

from cuda_sandbox.compiler import Compiler
from cuda_sandbox.kernel import Kernel
from cuda_sandbox.report import CompileReport, Status
from cuda_sandbox.signature import Signature

AS_WRITTEN = "as written"
_SERIALISED = "C75"  # ptxas on tensor-core work that it could not leave in flight


def variants(kernel: Kernel) -> dict[str, Kernel]:
    """The kernel as it is, and with every other value of each of its tunables, one at a time."""
    found = {AS_WRITTEN: kernel}
    for tunable in kernel.tunables():
        for choice in tunable.choices:
            if choice != tunable.value:
                found[f"{tunable.name} = {choice}"] = kernel.tuned({tunable.name: choice})
    return found


def compiled(
    kernel: Kernel, signature: Signature, arch: str
) -> Iterator[tuple[str, CompileReport]]:
    """What the compiler says of each variant, in order.

    Raises ValueError or RuntimeError where this machine cannot compile for ``arch``.
    """
    with Compiler() as compiler:
        waiting = [
            (name, compiler.submit(variant, signature, arch))
            for name, variant in variants(kernel).items()
        ]
        for name, report in waiting:
            yield name, report.result()


def sound(report: CompileReport) -> bool:
    """Whether it compiles, without spills and without products that are serialised."""
    spilled = any(one.spill_bytes for one in report.resources)
    return report.status is Status.OK and not spilled and _SERIALISED not in report.log


def line(name: str, report: CompileReport) -> str:
    """The compiler's word on a variant."""
    if report.status is not Status.OK:
        return f"{name}: {report.status}: {report.reason}"
    notes = [
        f"{one.function} {one.registers} registers, "
        + (f"spills {one.spill_bytes} bytes" if one.spill_bytes else "no spills")
        for one in report.resources
    ]
    notes += [text.strip() for text in report.log.splitlines() if _SERIALISED in text]
    return f"{name}: compiles" + "".join(f"; {note}" for note in notes)
