"""Find compilers, and the host folders that they need to see."""

from __future__ import annotations

import functools
import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cuda_sandbox.isolation import Mount

# Nothing of /etc, /home, /root, /var, /opt: only programs, libraries and headers of the system.
_SYSTEM = (
    *("/usr/bin", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libexec", "/usr/include"),
    *("/bin", "/lib", "/lib64", "/etc/alternatives", "/etc/ld.so.cache"),
)


@dataclass(frozen=True, slots=True)
class Toolchain:
    """A compiler as it is run inside its sandbox: what it sees of the host, its environment."""

    mounts: tuple[Mount, ...]
    environment: Mapping[str, str]


@functools.cache
def host_compiler() -> str | None:
    """The C++ compiler: CXX, else g++, else clang++; None if there is none."""
    for name in (os.environ.get("CXX", ""), "g++", "clang++"):
        if name and (found := shutil.which(name)):
            return found
    return None


@functools.cache
def has_vector_maths(compiler: str) -> bool:
    """Whether libmvec is there: ``-ffast-math`` may call it."""
    command = [compiler, "-print-file-name=libmvec.so"]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    return Path(answer.stdout.strip()).is_absolute()


@functools.cache
def version(program: str) -> str:
    """What ``PROGRAM --version`` says, on one line."""
    done = subprocess.run(
        [program, "--version"], capture_output=True, text=True, timeout=30, check=False
    )
    return " ".join(done.stdout.split())


@functools.cache
def cuda_toolkit() -> Path | None:
    """The folder of the CUDA toolkit behind the ``nvcc`` on the PATH (or in CUDA_HOME)."""
    for name in (f"{os.environ.get('CUDA_HOME', '')}/bin/nvcc", "nvcc", "/usr/local/cuda/bin/nvcc"):
        if found := shutil.which(name):
            return _behind(found)
    return None


def _behind(nvcc: str) -> Path | None:
    """The toolkit that an nvcc uses; it may be a script that starts another one."""
    done = subprocess.run(
        [nvcc, "--dryrun", "-c", "-x", "cu", "/dev/null", "-o", "/dev/null"],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    top = re.search(r"^#\$ TOP=(.+)$", done.stderr, re.MULTILINE)
    return Path(top[1].strip()).resolve() if top else None


def system_mounts() -> tuple[Mount, ...]:
    """The system's compiler, assembler, linker, libraries and headers."""
    return tuple(Mount(Path(path)) for path in _SYSTEM if Path(path).exists())


def prefix_mounts(program: str) -> tuple[Mount, ...]:
    """The installation folder of a compiler that lives outside the system's folders."""
    real = Path(program).resolve()
    prefix = real.parent.parent
    if any(real.is_relative_to(path) for path in _SYSTEM):
        return ()
    if prefix in (Path("/"), Path("/usr"), Path("/usr/local"), Path.home()):
        return (Mount(real),)  # its prefix would show the host
    return (Mount(prefix),)


def folder_mounts(folder: Path) -> tuple[Mount, ...]:
    """A folder, and where its top-level symbolic links lead out of it."""
    outside = {child.resolve() for child in folder.iterdir() if child.is_symlink()}
    outside = {path for path in outside if not path.is_relative_to(folder) and path.exists()}
    return (Mount(folder), *(Mount(path) for path in sorted(outside)))


@functools.cache
def cpu_fingerprint() -> str:
    """What ``-march=native`` depends on: the CPU's model and features, as a short digest."""
    wanted = re.compile(r"(?:vendor_id|cpu family|model|flags|Features|CPU part)\s*:")
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").split("\n\n")[0].splitlines()
    text = "\n".join(line for line in lines if wanted.match(line))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
