"""Names what a candidate reaches for. The walls are elsewhere (namespaces, seccomp, the judge's
clock and copies); this only makes the reason say what was done, as long as Python was asked."""

from __future__ import annotations

import _thread
import builtins
import ctypes
import sys
import threading
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from types import FrameType
from typing import Any, NoReturn

import torch

from cuda_sandbox.protocol import Failure
from fitness.module.runner.candidate import NAME
from fitness.module.runner.orders import Refused

Tell = Callable[[Failure, str], NoReturn]

_PROGRAMS = (
    "subprocess.Popen os.system os.exec os.posix_spawn os.spawn os.fork os.forkpty pty.spawn"
)
_NETWORK = (
    "socket.__new__ socket.connect socket.bind socket.sendto socket.getaddrinfo "
    "socket.gethostbyname urllib.Request http.client.connect ftplib.connect"
)
_STARTERS = (
    *("start_new_thread", "start_new", "start_joinable_thread"),
    *("_start_new_thread", "_start_joinable_thread"),
)
_SIGNALS = {"os.kill": "sends signals to processes"}
_PRYING = {
    **{
        name: f"looks through the objects of its process ({name})"
        for name in ("gc.get_objects", "gc.get_referrers", "gc.get_referents")
    },
    **dict.fromkeys(
        ("sys._getframe", "sys._current_frames"), "looks through the frames of its callers"
    ),
    **{
        name: f"puts itself between calls ({name})"
        for name in ("sys.settrace", "sys.setprofile", "sys.monitoring.register_callback")
    },
}
_FRAMES = ("gi_frame", "cr_frame", "ag_frame", "tb_frame")
_SAID = {**_SIGNALS, **_PRYING}
_THROUGH = ("inspect", "traceback", "pathlib", "io", "os", "glob", "posixpath", "genericpath", "gc")
_HARMLESS = ("/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/sys/", "/proc/self/cgroup")
_BUILDERS = """
    ninja c++ g++ gcc cc clang clang++ nvcc ptxas ptxas-blackwell cuobjdump nvdisasm ld
    ldconfig which file uname ccache cicc fatbinary as ar
"""
BUILDERS = frozenset(_BUILDERS.split())
"""Programs that build extensions; they run before the worker, never in it."""


def program_of(event: str, args: tuple[Any, ...]) -> str:
    """The name of the program that an audit event is about."""
    if event in ("os.fork", "os.forkpty"):
        return "a copy of itself"
    told = args[1] if event == "subprocess.Popen" and len(args) > 1 and args[1] else args[0]
    first = told[0] if isinstance(told, (list, tuple)) and told else told
    if isinstance(first, bytes):
        first = first.decode("utf-8", "replace")
    words = str(first).split()
    return PurePath(words[0]).name if words else "a program"


class Watch:
    """An audit hook: it cannot be taken out again. ``rules`` may be cut down for a rehearsal."""

    def __init__(self, source: str, tell: Tell) -> None:
        self._source = source
        self._tell = tell
        self._busy = False
        self.loaded: list[str] = []
        self.rules: dict[str, Callable[[str, tuple[Any, ...]], None]] = {
            **dict.fromkeys(_PROGRAMS.split(), self._program),
            **dict.fromkeys(_NETWORK.split(), self.network),
            **dict.fromkeys(_SIGNALS, self._plainly),
            **dict.fromkeys(_PRYING, self._prying),
            "object.__getattr__": self._attribute,
            **dict.fromkeys(("open", "os.listdir", "os.scandir"), self._open),
            "ctypes.dlopen": self._library,
        }

    def begin(self) -> None:
        """From now on everything is the candidate's doing."""
        sys.addaudithook(self._hook)

    def forbid_threads(self) -> None:
        """Whoever starts a thread by Python's means is told of. Where things are built, it may."""
        for owner in (_thread, threading):  # not every Python audits the start of a thread
            for name in _STARTERS:
                if hasattr(owner, name):
                    setattr(owner, name, self._thread)

    def _hook(self, event: str, args: tuple[Any, ...]) -> None:
        rule = self.rules.get(event)
        if rule is None or self._busy:
            return
        self._busy = True
        try:
            rule(event, args)
        finally:
            self._busy = False

    def _program(self, event: str, args: tuple[Any, ...]) -> None:
        name = program_of(event, args)
        if name in BUILDERS:
            reason = f"builds something new at a call ({name}): what is built must be built at once"
            self._tell(Failure.NOT_BUILT, reason)
        self._tell(Failure.FORBIDDEN, f"starts a program: {name}")

    def _thread(self, *_: Any, **__: Any) -> NoReturn:
        self._tell(Failure.FORBIDDEN, "starts a thread of its own")

    def network(self, event: str, _: tuple[Any, ...]) -> None:
        """Nobody answers in here; whoever asks is told of."""
        self._tell(Failure.FORBIDDEN, f"reaches for the network ({event})")

    def _plainly(self, event: str, _: tuple[Any, ...]) -> None:
        self._tell(Failure.FORBIDDEN, _SAID[event])

    def _prying(self, event: str, _: tuple[Any, ...]) -> None:
        if self._is_candidates(sys._getframe()):
            self._tell(Failure.FORBIDDEN, _SAID[event])

    def _attribute(self, _: str, args: tuple[Any, ...]) -> None:
        """Frames lead to the callers; who prints a traceback by way of a library looks at none."""
        if args[1] in _FRAMES and self._is_candidates(sys._getframe(), through=frozenset()):
            self._tell(Failure.FORBIDDEN, f"{_PRYING['sys._getframe']} ({args[1]})")

    def _open(self, _: str, args: tuple[Any, ...]) -> None:
        path = args[0] if args else ""
        path = path.decode("utf-8", "replace") if isinstance(path, bytes) else str(path)
        odd = path.startswith("/proc") and not path.startswith(_HARMLESS)
        if odd and self._is_candidates(sys._getframe()):
            self._tell(Failure.FORBIDDEN, f"reads {path}")

    def _library(self, _: str, args: tuple[Any, ...]) -> None:
        if args and args[0] is not None:
            self.loaded.append(PurePath(str(args[0])).name)

    def _is_candidates(self, frame: FrameType | None, through: Collection[str] = _THROUGH) -> bool:
        """Whether the call comes from the candidate's file, directly or by way of ``through``."""
        while frame is not None:
            name = frame.f_globals.get("__name__", "")
            if frame.f_code.co_filename == self._source or name == NAME:
                return True
            if name != __name__ and name.partition(".")[0] not in through:
                return False
            frame = frame.f_back
        return False


_SEEDING = ("torch.manual_seed",)
"""torch._dynamo wraps it when it is imported, which happens by itself; we draw nothing here."""
_CLOCKS = ("clock_gettime", "gettimeofday", "time")
_CODE_BYTES = 32


@dataclass(frozen=True)
class Originals:
    """What stood where timers, comparisons and PyTorch's tools are, before a candidate came.

    ``code`` holds the first instructions of the C library's clocks.
    """

    kept: tuple[tuple[str, Any, Mapping[str, Any]], ...]
    code: Mapping[str, bytes]

    @classmethod
    def now(cls) -> Originals:
        """As it is now."""
        places = {
            "time": time,
            "builtins": builtins,
            "torch": torch,
            "torch.Tensor": torch.Tensor,
            "torch.cuda": torch.cuda,
            "torch.cuda.Event": torch.cuda.Event,
            "torch.cuda.Stream": torch.cuda.Stream,
            "torch.nn.Module": torch.nn.Module,
        }
        kept = tuple((name, place, _callables(place)) for name, place in places.items())
        return cls(kept, {name: _instructions(name) for name in _CLOCKS})

    def require(self) -> None:
        """Raise Refused(FORBIDDEN) where something else stands there now."""
        for place, owner, kept in self.kept:
            for name, value in kept.items():
                said = f"{place}.{name}"
                if getattr(owner, name, None) is not value and said not in _SEEDING:
                    raise Refused(Failure.FORBIDDEN, f"replaces {said}")
        for name, code in self.code.items():
            if _instructions(name) != code:
                raise Refused(Failure.FORBIDDEN, f"rewrites {name} in memory")


def _instructions(name: str) -> bytes:
    function = getattr(ctypes.CDLL(None), name)
    return ctypes.string_at(ctypes.cast(function, ctypes.c_void_p), _CODE_BYTES)


def _callables(owner: Any) -> Mapping[str, Any]:
    """Functions and classes by name, inherited ones too; not what is made anew at each look."""
    names = dir(owner) if isinstance(owner, type) else vars(owner)
    found = {name: getattr(owner, name, None) for name in names}
    return {
        name: value
        for name, value in found.items()
        if callable(value) and getattr(owner, name, None) is value
    }
