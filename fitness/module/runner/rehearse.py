"""The rehearsal: everything is built that a worker cannot build, since it starts no programs.

Runs in a compiler's jail: no judge's data, no network, a folder to write to. The module is
imported, made, and called on numbers of no meaning. Only what fails before the call counts.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import sys
from pathlib import Path
from typing import NoReturn

import torch

from cuda_sandbox.protocol import Failure
from fitness.module.runner import programs
from fitness.module.runner.candidate import build, load
from fitness.module.runner.orders import REPORT, Orders, Refused, Spec, filled
from fitness.module.runner.watch import BUILDERS, Watch, program_of

_STARTS = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "pty.spawn")


def main() -> None:
    """``python -m fitness.module.runner.rehearse FOLDER``."""
    orders = Orders.read(Path(sys.argv[1]))
    kind = os.environ["KERNELEVO_DEVICE"]
    device = torch.device(kind, 0) if kind == "cuda" else torch.device(kind)
    importlib.import_module(f"fitness.module.runner.{kind}").prepare()
    torch.set_grad_enabled(False)
    programs.record()
    _watch(orders)
    try:
        _rehearse(orders, device)
    except Refused as refused:
        _report(refused.failure, refused.reason)
    _report(None, "")


def _rehearse(orders: Orders, device: torch.device) -> None:
    model = build(load(orders.source), orders, device)
    leaves = [_stand_in(spec, device) for spec in orders.leaves]
    with contextlib.suppress(Exception):  # stand-ins may well be out of the operator's domain
        model(*(filled(argument, leaves) for argument in orders.forward))
        if device.type == "cuda":
            torch.cuda.synchronize()


def _stand_in(spec: Spec, device: torch.device) -> torch.Tensor:
    """Numbers that hardly any operator minds: between 0 and 1, or zeros."""
    dtype = getattr(torch, spec.dtype)
    if dtype.is_floating_point:
        return torch.rand(spec.shape, device=device).to(dtype)
    return torch.zeros(spec.shape, dtype=dtype, device=device)


def _watch(orders: Orders) -> None:
    """Only the network and programs that build nothing are forbidden here."""
    watch = Watch(str(orders.source), _report)
    network = {event: rule for event, rule in watch.rules.items() if rule == watch.network}
    watch.rules = {**network, **dict.fromkeys(_STARTS, _program)}
    watch.begin()


def _program(event: str, args: tuple[object, ...]) -> None:
    name = program_of(event, args)
    if name not in BUILDERS:
        _report(Failure.FORBIDDEN, f"starts a program: {name}")


def _report(failure: Failure | None, reason: str) -> NoReturn:
    told = {"failure": failure, "reason": reason}
    (programs.folder() / REPORT).write_text(json.dumps(told), encoding="utf-8")
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
