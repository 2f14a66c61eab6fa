"""What a device backend is: one class in one file of ``backends/``, found by the file's name."""

from __future__ import annotations

import functools
import importlib
import pkgutil
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cuda_sandbox import backends
from cuda_sandbox.buffers import Buffers
from cuda_sandbox.isolation import Mount
from cuda_sandbox.programs import Program
from cuda_sandbox.report import Resources
from cuda_sandbox.screen import Rules
from cuda_sandbox.signature import Signature
from cuda_sandbox.tensor import TensorSpec
from cuda_sandbox.toolchain import Toolchain

if TYPE_CHECKING:
    from cuda_sandbox.profiler import Probe


@dataclass(frozen=True, slots=True)
class Check:
    """One run of a sanitizer over our driver program with the candidate in it.

    ``prefix`` is the command before the driver, ``missing`` says why it cannot run here, and
    ``verdict`` turns exit code and output into what is wrong, for each check that found something.
    """

    prefix: tuple[str, ...]
    environment: Mapping[str, str]
    verdict: Callable[[int, str], Mapping[str, str]]
    names: tuple[str, ...]
    missing: str = ""


@dataclass(frozen=True, slots=True)
class Checks:
    """A backend's sanitizers: the compiler's command, the driver's source, the runs, the jail."""

    command: tuple[str, ...]
    driver: Callable[[Signature], str]
    runs: tuple[Check, ...]
    mounts: tuple[Mount, ...] = ()


class Backend(ABC):
    """How kernels of one language are compiled, screened and run."""

    name: str
    suffix: str
    device: str  # the kind of device its kernels run on, as torch names it
    rules: Rules
    allowed_flags: str  # regular expressions, one per flag, separated by blanks

    @abstractmethod
    def missing(self) -> str:
        """Why this machine cannot compile for the backend; empty if it can."""

    @abstractmethod
    def identity(self, arch: str) -> str:
        """What makes an object here another object elsewhere: compiler version, architecture.

        Raises:
            ValueError: ``arch`` is no architecture of this backend.
        """

    @abstractmethod
    def command(self, arch: str, flags: Sequence[str]) -> list[str]:
        """The compiler's command line, without sources and output."""

    @abstractmethod
    def toolchain(self) -> Toolchain:
        """What the sandboxed compiler sees."""

    @abstractmethod
    def program(self, device: str, cache: Path) -> Program:
        """The worker for a device, built into the cache if it is not there yet.

        Raises:
            RuntimeError: the worker cannot be built here.
        """

    @abstractmethod
    def buffers(self, tensors: Sequence[TensorSpec], index: int) -> Buffers:
        """Memory that a worker on device ``index`` of this kind can share with us."""

    @abstractmethod
    def checks(self, arch: str, flags: Sequence[str]) -> Checks:
        """How a kernel is certified with this language's sanitizers."""

    def probe(self, arch: str, flags: Sequence[str]) -> Probe:
        """How a kernel is looked into at work; by default it is not."""
        from cuda_sandbox.profiler import Probe, Profile
        from cuda_sandbox.standalone import Recipe

        del arch, flags
        why = f"{self.name} kernels are not profiled"
        return Probe(Recipe((), lambda _: ""), lambda *_: Profile(missing=why), missing=why)

    def defines(self, source: str, header: str) -> list[str]:
        """Macros that spare the compiler parts of the header that this source does not need."""
        del source, header
        return []

    def resources(self, log: str) -> tuple[Resources, ...]:
        """What the compiler's output says of each device function."""
        del log
        return ()

    def refused_flag(self, flags: Iterable[str]) -> str:
        """The first flag that is not allowed, in a message with those that are; empty if none."""
        patterns = self.allowed_flags.split()
        for flag in flags:
            if not any(re.fullmatch(pattern, flag) for pattern in patterns):
                return (
                    f"flag {flag!r} is not allowed for {self.name}; allowed: {', '.join(patterns)}"
                )
        return ""


def names() -> tuple[str, ...]:
    """The backends there are."""
    return tuple(sorted(module.name for module in pkgutil.iter_modules(backends.__path__)))


@functools.cache
def find(name: str) -> Backend:
    """The backend in ``backends/NAME.py``.

    Raises:
        ValueError: there is no such file; the message lists those there are.
    """
    if name not in names():
        raise ValueError(f"no backend is called {name!r}; choose from: {', '.join(names())}")
    backend: Backend = importlib.import_module(f"{backends.__name__}.{name}").make()
    return backend
