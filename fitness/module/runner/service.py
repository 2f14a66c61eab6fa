"""A worker's life: the device is opened, the jail shut, the candidate loaded, requests answered."""

from __future__ import annotations

import importlib
import json
import os
from collections.abc import Callable
from typing import Any

import torch

from cuda_sandbox.protocol import Flag, Op, Request
from fitness.module.runner import programs
from fitness.module.runner.candidate import build, load
from fitness.module.runner.channel import Channel
from fitness.module.runner.jail import Jail, memory_limit
from fitness.module.runner.options import Options
from fitness.module.runner.orders import Orders, Refused
from fitness.module.runner.stage import Stage
from fitness.module.runner.watch import Originals, Watch

_FILES = 4096  # the driver opens a descriptor per mapping
_STAGES = {"cpu": "CpuStage", "cuda": "CudaStage"}  # in the file of that name


class Service:
    """Serves one candidate, whose files lie in their folder when the first request has come.

    Until then nothing is open and nothing of a candidate is known: such processes wait in berths.
    """

    def __init__(self, options: Options, jail: Jail, channel: Channel) -> None:
        self._jail, self._channel = jail, channel
        kind = os.environ["KERNELEVO_DEVICE"]
        self._device = torch.device(kind, 0) if kind == "cuda" else torch.device(kind)
        self._room = importlib.import_module(f"fitness.module.runner.{kind}")
        order, _ = channel.receive()
        self._captures = bool(order.flags & Flag.CAPTURE)
        self._room.prepare()
        torch.set_num_threads(len(options.cpus.split(",")))
        torch.set_grad_enabled(False)
        self._orders = Orders.read(options.folder)
        self._originals = Originals.now()
        programs.replay()
        limit = memory_limit(kind == "cpu")
        self._layers = jail.confine(limit, _FILES, options.read, options.write)
        self._watch = Watch(str(self._orders.source), channel.fail)

    def serve(self) -> None:
        """Until the judge goes away or the candidate fails."""
        self._channel.ready(self._layers)
        try:
            stage = self._loaded()
            self._channel.done()
            while True:
                self._answer(stage, *self._channel.receive())
        except Refused as refused:
            self._channel.fail(refused.failure, refused.reason)

    def _loaded(self) -> Stage:
        self._watch.begin()
        self._watch.forbid_threads()
        module = load(self._orders.source)
        model = build(module, self._orders, self._device)
        made: Stage = getattr(self._room, _STAGES[self._device.type])(
            model, self._orders, self._device, captures=self._captures
        )
        self._originals.require()
        return made

    def _answer(self, stage: Stage, request: Request, descriptor: int) -> None:
        channel = self._channel
        plain: dict[Op, Callable[[], None]] = {
            Op.BUFFER: lambda: stage.add(request, descriptor, self._jail),
            Op.BIND: stage.bind,
            Op.SETTLE: stage.settle,
        }
        if request.op in plain:
            plain[request.op]()
            channel.done()
        elif request.op is Op.RUN:
            channel.times(stage.run(request))
        elif request.op is Op.RUN_EMPTY:
            channel.times(stage.run_empty(request))
        else:
            channel.text(json.dumps(self._told(stage, request.op)))

    def _told(self, stage: Stage, op: Op) -> dict[str, Any]:
        """Facts, or one call that is watched."""
        if op is Op.TRACE:
            found = stage.trace()
            self._originals.require()
            return {**found, "mode": stage.mode, "loads": self._watch.loaded}
        return {"weights": stage.placing.how, "own": [one.said for one in stage.placing.own]}
