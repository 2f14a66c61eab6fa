"""The jail, the crash handler and the mapping of tensors: C++, shared with the other workers."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from pathlib import Path

from cuda_sandbox.protocol import Flag, Request


class Jail:
    """The library built from ``worker/embedded.cpp``."""

    def __init__(self, library: str) -> None:
        self._library = ctypes.CDLL(library)
        self._library.embedded_confine.argtypes = (
            *(ctypes.c_uint64, ctypes.c_uint64, ctypes.c_char_p, ctypes.c_char_p),
        )
        self._library.embedded_map.argtypes = (
            *(ctypes.c_uint32, ctypes.c_int, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_int),
        )
        self._library.embedded_map.restype = ctypes.c_void_p

    def prepare(self, control: int, cpus: str, *, driver: bool) -> None:
        """First things first: die with the judge, hold no stray descriptors, be pinned.

        ``driver``: a CUDA driver will be here, whose forbidden system calls fail quietly.
        """
        self._library.embedded_prepare(control, cpus.encode(), driver)

    def confine(self, memory: int, files: int, read: Sequence[str], write: Sequence[str]) -> int:
        """Shut the jail for good. ``memory`` in bytes of address space; 0: no limit."""
        lists = ("".join(f"{path}\n" for path in paths).encode() for paths in (read, write))
        return int(self._library.embedded_confine(memory, files, *lists))

    def serial(self, number: int) -> None:
        """Which request is being answered."""
        self._library.embedded_serial(ctypes.c_uint32(number))

    def map(self, request: Request, descriptor: int) -> int:
        """The address of a tensor that the judge shares through a memory file."""
        writable = bool(request.flags & Flag.WRITABLE)
        where = (request.index, writable, request.offset, request.span, descriptor)
        return int(self._library.embedded_map(*where))


def address_space() -> int:
    """Bytes of address space that this process uses, as far as it can be told."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    except OSError:
        return 16 << 30  # no /proc in this jail; Python with torch takes a few GiB
    return pages * 4096


def memory_limit(on_cpu: bool) -> int:
    """Bytes of address space: half of the machine's memory on top; none where CUDA reserves it."""
    half = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    return address_space() + half if on_cpu else 0
