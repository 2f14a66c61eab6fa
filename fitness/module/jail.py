"""What a module's processes see of this machine: Python, PyTorch, and on a GPU its driver."""

from __future__ import annotations

import importlib.util
import os
import shutil
import site
import sys
from dataclasses import dataclass
from pathlib import Path

import cuda_sandbox.protocol
import fitness.dispatch
from cuda_sandbox import driver, isolation, toolchain
from cuda_sandbox.backends.cuda import chip, device_mounts
from cuda_sandbox.isolation import Mount
from cuda_sandbox.programs import Program, build, search_path
from cuda_sandbox.toolchain import Toolchain
from fitness.module import runner

_EMBEDDED = (
    *("embedded.cpp", "candidate.hpp", "crash.hpp", "jail.hpp", "mapping.hpp"),
    *("protocol.hpp", "seccomp.hpp"),
)
_START_S = 120.0  # importing torch on a busy machine with a cold disk
_INSIDE = Path("/runner")
_LIBRARY, _BUILT = "/jail.so", "/out"
CACHES = ("triton", "inductor")
"""Folders that libraries want to have beside what they built."""

_FACTS = (  # what torch reads of the CPU before it chooses its kernels
    *("/proc/cpuinfo", "/proc/meminfo"),
    *("/sys/devices/system/cpu", "/sys/devices/system/node"),
)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a module runs: ``kind`` is ``cpu`` or ``cuda``, ``device`` ``cpu`` or ``cuda:N``."""

    kind: str
    device: str

    @property
    def is_cuda(self) -> bool:
        """Whether a GPU takes part."""
        return self.kind == "cuda"


def worker_program(place: Place, built: Path, cache: Path) -> Program:
    """The worker of a module whose extensions lie in the folder ``built``."""
    library = _library(cache)
    jailed = not isolation.namespaces_missing()
    mounts = (
        *_python_mounts(),
        *_our_mounts(jailed),
        Mount(library, _LIBRARY if jailed else ""),
        Mount(built, _BUILT if jailed else ""),
        *_device_mounts(place),
    )
    environment = {
        **_environment(place, Path(_BUILT) if jailed else built, jailed),
        "KERNELEVO_JAIL": _LIBRARY if jailed else str(library),
        "OMP_DYNAMIC": "false",
        "GOMP_SPINCOUNT": "1000",
    }
    return Program(
        path=_folder(),
        mounts=tuple(dict.fromkeys(mounts)),
        environment=environment,
        proc=place.is_cuda,
        bounds_memory=False,
        writable=driver.device_nodes() if place.is_cuda else (),
        inside=str(_INSIDE / _relative(_folder())),
        command=(sys.executable, "-s", "-P", "-B", "-m", runner.__name__),
        start_s=_START_S,
    )


def rehearsal_tools(place: Place, built: Path, arch: str) -> Toolchain:
    """What the rehearsal sees: the same, and the compilers."""
    jailed = not isolation.namespaces_missing()
    inside = Path(_BUILT) if jailed else built
    toolkit = toolchain.cuda_toolkit() if place.is_cuda else None
    ninja = [Path(found)] if (found := shutil.which("ninja")) else []
    mounts = (
        *toolchain.system_mounts(),
        *_python_mounts(),
        *_our_mounts(jailed, whole=True),
        *map(Mount, ninja),
        *_device_mounts(place),
    )
    folders = [Path(sys.executable).parent, *(path.parent for path in ninja)]
    folders += [toolkit / "bin"] if toolkit else []
    path = ":".join([*map(str, folders), "/usr/bin", "/bin", "/usr/sbin", "/sbin"])
    environment = {
        **_environment(place, inside, jailed),
        **({"CUDA_HOME": str(toolkit), "TORCH_CUDA_ARCH_LIST": _arch(arch)} if toolkit else {}),
        **{"PATH": path, "TMPDIR": "/tmp", "HOME": "/tmp"},
        "MAX_JOBS": str(len(os.sched_getaffinity(0))),
    }
    return Toolchain(tuple(dict.fromkeys(mounts)), environment)


def rehearsal_command(folder: str) -> tuple[str, ...]:
    """The command that rehearses the module in ``folder`` (as it is seen inside)."""
    return (sys.executable, "-s", "-P", "-B", "-m", f"{runner.__name__}.rehearse", folder)


def _environment(place: Place, built: Path, jailed: bool) -> dict[str, str]:
    root = _INSIDE if jailed else Path(__file__).parents[2]
    environment = {
        "PYTHONPATH": os.pathsep.join([str(root), *map(str, _packages())]),
        "PYTHONDONTWRITEBYTECODE": "1",
        "KERNELEVO_DEVICE": place.kind,
        "KERNELEVO_BUILT": str(built),
        "TORCH_EXTENSIONS_DIR": str(built / "extensions"),
        "TRITON_CACHE_DIR": str(built / "triton"),
        "TORCHINDUCTOR_CACHE_DIR": str(built / "inductor"),
        "USER": "candidate",
        "LC_ALL": "C.UTF-8",
    }
    if place.is_cuda:
        environment |= {
            "LD_LIBRARY_PATH": os.pathsep.join(
                [search_path(driver.library_mounts()), *map(str, _library_folders())]
            ),
            "CUDA_VISIBLE_DEVICES": driver.device(driver.ordinal(place.device)).uuid,
            "CUDA_CACHE_DISABLE": "1",
            "TRITON_LIBCUDA_PATH": str(driver.library_path().parent),
        }
    return environment


def _arch(arch: str) -> str:
    """``sm_90`` as torch's builds name it: 9.0a."""
    name = chip(arch)
    digits = name.rstrip("af")
    return f"{digits[:-1]}.{digits[-1]}{name[len(digits) :]}"


def _library(cache: Path) -> Path:
    compiler = toolchain.host_compiler()
    if compiler is None:
        raise RuntimeError("no C++ compiler: install g++ or clang++, or set CXX")
    options = ["-O2", "-std=c++17", "-shared", "-fPIC", "-ldl"]
    return build("embedded", _EMBEDDED, [compiler, *options], cache)


def _python_mounts() -> tuple[Mount, ...]:
    """The interpreter, its library, and the folders that packages are installed in."""
    base = Path(sys.base_prefix)
    parts = [base / name for name in ("bin", "lib", "lib64", "include")]
    if base == Path("/usr"):
        parts = []  # among the system's folders
    system = [Path(name) for name in ("/usr/lib", "/usr/lib64", "/lib", "/lib64", "/usr/bin")]
    found = [*system, *parts, *_packages(), Path("/etc/ld.so.cache"), Path("/etc/alternatives")]
    if sys.prefix != sys.base_prefix:
        found.append(Path(sys.prefix))
    found += map(Path, _FACTS)
    chance = Mount(Path("/dev/urandom"), device=True)  # torch will not start without
    return (*(Mount(path) for path in dict.fromkeys(found) if path.exists()), chance)


def _packages() -> list[Path]:
    """The folders of site-packages, and the one that torch lies in, if that is another."""
    found = [
        *site.getsitepackages(),
        *([site.getusersitepackages()] if site.ENABLE_USER_SITE else []),
    ]
    spec = importlib.util.find_spec("torch")
    if spec is not None and spec.origin:
        found.append(str(Path(spec.origin).parents[1]))
    return [path for path in dict.fromkeys(map(Path, found)) if path.is_dir()]


def _our_mounts(jailed: bool, *, whole: bool = False) -> tuple[Mount, ...]:
    """The files of ours that a runner imports, and nothing else of this project."""
    files = [Path(str(module.__file__)) for module in (cuda_sandbox.protocol, fitness.dispatch)]
    if whole:
        files.append(_folder())
    if not jailed:
        return tuple(Mount(path) for path in files)
    return tuple(Mount(path, str(_INSIDE / _relative(path))) for path in files)


def _folder() -> Path:
    return Path(str(runner.__file__)).parent


def _relative(path: Path) -> Path:
    return path.relative_to(Path(__file__).parents[2])


def _device_mounts(place: Place) -> tuple[Mount, ...]:
    """The driver and, for a PyTorch that brings no libraries of its own, the toolkit's."""
    if not place.is_cuda:
        return ()
    toolkit = toolchain.cuda_toolkit()
    folders = toolchain.folder_mounts(toolkit) if toolkit else ()
    return (*device_mounts(), *folders, *map(Mount, _library_folders()))


def _library_folders() -> list[Path]:
    """Where this process itself was told to look for libraries."""
    told = os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep)
    return [Path(name) for name in told if name and Path(name).is_dir()]
