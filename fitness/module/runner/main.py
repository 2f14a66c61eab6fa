"""The worker of a module: into the jail, load the candidate, and do what the judge asks."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

from fitness.module.runner.channel import Channel
from fitness.module.runner.jail import Jail, address_space
from fitness.module.runner.printing import replace_standard_streams


@dataclass(frozen=True)
class Options:
    """The command line as cuda_sandbox/process.py makes it: pairs of a word and its value."""

    control: int
    folder: Path
    cpus: str
    read: tuple[str, ...]
    write: tuple[str, ...]

    @classmethod
    def parse(cls, words: list[str]) -> Options:
        """The options that concern a module."""
        pairs = list(zip(words[::2], words[1::2], strict=True))
        one = dict(pairs)
        several = (tuple(v for k, v in pairs if k == key) for key in ("--read", "--write"))
        return cls(int(one["--control"]), Path(one["--object"]), one["--cpus"], *several)


def main() -> None:
    """Run until the judge goes away."""
    options = Options.parse(sys.argv[1:])
    jail = Jail(os.environ["KERNELEVO_JAIL"])
    driver = os.environ["KERNELEVO_DEVICE"] == "cuda"
    jail.prepare(options.control, options.cpus, driver=driver)
    replace_standard_streams()
    channel = Channel(options.control, jail)
    from fitness.module.runner.service import Service  # torch: not before the jail's handlers

    Service(options, jail, channel).serve()


def memory_limit(on_cpu: bool) -> int:
    """Bytes of address space: half of the machine's memory on top; none where CUDA reserves it."""
    half = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    return address_space() + half if on_cpu else 0
