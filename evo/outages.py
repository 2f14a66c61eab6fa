"""What a person should know of the lines to the models: troubles, and since when one is silent."""

from __future__ import annotations

import time
from dataclasses import dataclass

from evo.recorder import Recorder
from evo.watch import Watch
from operators.llm import Kind
from operators.llm.policy import Notice


@dataclass(frozen=True, slots=True)
class Outage:
    """A model that does not answer ``since`` (seconds since 1970)."""

    model: str
    kind: Kind
    since: float

    def __str__(self) -> str:
        clock = time.strftime("%H:%M:%S", time.localtime(self.since))
        return f"waiting for {self.model} since {clock}: {self.kind}"


class Outages:
    """Takes the notices of all lines: says them once, and records them."""

    def __init__(self, recorder: Recorder, watch: Watch) -> None:
        self._recorder = recorder
        self._watch = watch
        self._now: dict[str, Outage] = {}

    @property
    def now(self) -> list[Outage]:
        """The models that are waited for."""
        return list(self._now.values())

    def notice(self, notice: Notice) -> None:
        """What a line has to tell."""
        known = self._now.get(notice.model)
        if notice.then is None:
            self._over(notice, known)
        elif notice.wait_s is None:
            self._recorder.add_event(
                "trouble", notice.model, trouble=str(notice.kind), then=str(notice.then)
            )
            self._watch.say(str(notice))
        elif known is None:
            self._now[notice.model] = Outage(notice.model, notice.kind, time.time())
            self._recorder.add_event("outage", notice.model, trouble=str(notice.kind))
            self._changed(str(notice))

    def _over(self, notice: Notice, known: Outage | None) -> None:
        if known is None:
            return
        del self._now[notice.model]
        seconds = time.time() - known.since
        self._recorder.add_event("outage over", notice.model, seconds=round(seconds, 1))
        self._changed(f"{notice}, after {seconds:.0f} s")

    def _changed(self, message: str) -> None:
        self._watch.silent([str(outage) for outage in self._now.values()])
        self._watch.say(message)
