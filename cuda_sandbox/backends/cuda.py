"""CUDA C++: nvcc, for the exact chip."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from pathlib import Path

from cuda_sandbox import driver, drivers, ncu, ptxas, reports, toolchain
from cuda_sandbox.backend import Backend, Check, Checks
from cuda_sandbox.buffers import Buffers
from cuda_sandbox.cuda_buffers import CudaBuffers
from cuda_sandbox.cuda_names import unneeded_headers
from cuda_sandbox.isolation import Mount
from cuda_sandbox.profiler import Probe
from cuda_sandbox.programs import WORKER_SOURCES, Program, build, libraries, search_path
from cuda_sandbox.report import Resources
from cuda_sandbox.screen import with_extra
from cuda_sandbox.signature import Signature
from cuda_sandbox.standalone import Recipe
from cuda_sandbox.tensor import TensorSpec
from cuda_sandbox.toolchain import Toolchain

WORKER = (
    "cuda_worker.cu",
    "candidate.hpp",
    "capture.hpp",
    "crash.hpp",
    "jail.hpp",
    "protocol.hpp",
    "seccomp.hpp",
    "tensor_map.hpp",
)
# Chips whose own instructions (wgmma, setmaxnreg, tcgen05) need the suffix.
_SPECIFIC = {"90", "100", "101", "103", "110", "120", "121"}
_CUDART = (
    r"__cuda\w+|cudaLaunch(?:Cooperative)?Kernel\w*"
    r"|cuda(?:Memset|Memcpy)(?:2D|3D|ToSymbol|FromSymbol)?Async(?:_ptsz)?"
    r"|cudaFunc(?:SetAttribute|GetAttributes|SetCacheConfig)|cuda(?:Get|PeekAt)LastError"
    r"|cudaGetError(?:Name|String)|cudaOccupancy\w+|cudaGetDevice(?:Properties\w*)?"
    r"|cudaDeviceGetAttribute|cudaGetSymbol(?:Address|Size)|cudaCtxResetPersistingL2Cache"
    r"|cudaEvent(?:Create\w*|Record|Destroy)|cudaStream(?:Create\w*|WaitEvent|Destroy)"
    r"|kernelevo_tensor_map_tiled"
)
_SYSTEM_FOLDERS = ("/sys/devices/system/cpu", "/sys/devices/system/node")
# The padding keeps allocations apart: a write past one tensor would be in the next.
_SANITIZERS: dict[str, tuple[str, ...]] = {
    "memcheck": ("--padding", "4096"),
    "racecheck": (),
    "initcheck": (),
    "synccheck": (),
}
_DEVICES = ("/dev/zero", "/dev/urandom")


class Cuda(Backend):
    """One shared object per kernel, machine code for one chip only."""

    name = "cuda"
    suffix = ".cu"
    device = "cuda"
    rules = with_extra(_CUDART, r"libcudart\.so[.\d]*")
    allowed_flags = (
        r"--?use_fast_math --?ftz=(?:true|false) --?prec-div=(?:true|false)"
        r" --?prec-sqrt=(?:true|false) --?fmad=(?:true|false) --?maxrregcount=\d+ -O[0-3]"
        r" --?restrict --?extra-device-vectorization --expt-relaxed-constexpr"
        r" --expt-extended-lambda"
    )

    def missing(self) -> str:
        """Whether there are nvcc and a host compiler."""
        if toolchain.cuda_toolkit() is None:
            return "no nvcc: install the CUDA toolkit and put nvcc on the PATH, or set CUDA_HOME"
        return "" if toolchain.host_compiler() else "no C++ compiler for nvcc: install g++"

    def identity(self, arch: str) -> str:
        """Toolkit, host compiler and chip."""
        parts = [toolchain.version(self._nvcc()), toolchain.version(str(toolchain.host_compiler()))]
        return " ".join([*parts, *self.command(arch, ())])

    def command(self, arch: str, flags: Sequence[str]) -> list[str]:
        """Optimised machine code for one chip, with the assembler's report."""
        options = [
            "-shared",
            "-cudart",
            "shared",
            "-std=c++17",
            "-O3",
            "-Xcompiler",
            "-fPIC",
            "-Xptxas",
            "-v",
        ]
        return [self._nvcc(), *options, *code_for(arch), *flags]

    def toolchain(self) -> Toolchain:
        """The system's folders and the CUDA toolkit."""
        toolkit = self._toolkit()
        mounts = toolchain.system_mounts() + toolchain.folder_mounts(toolkit)
        host = Path(str(toolchain.host_compiler())).parent
        path = f"{toolkit}/bin:{host}:/usr/bin:/bin"
        return Toolchain(mounts, {"PATH": path, "LC_ALL": "C.UTF-8", "TMPDIR": "/tmp"})

    def checks(self, arch: str, flags: Sequence[str]) -> Checks:
        """compute-sanitizer's four tools, one run each."""
        program = self._toolkit() / "bin" / "compute-sanitizer"
        missing = "" if program.exists() else "the CUDA toolkit here has no compute-sanitizer"
        missing = missing or ("" if driver.count() else "no CUDA device")
        runs = tuple(self._check(name, str(program), missing) for name in _SANITIZERS)
        mounts = () if missing else device_mounts()
        return Checks(self._alone(arch, flags), self._driver, runs, mounts)

    def probe(self, arch: str, flags: Sequence[str]) -> Probe:
        """Nsight Compute over the same program."""
        program = ncu.program()
        missing = "" if driver.count() else "no CUDA device"
        if program is None:
            missing = missing or "no ncu: install NVIDIA Nsight Compute"
        missing = missing or ncu.forbidden()
        if missing or program is None:
            recipe = Recipe(self._alone(arch, flags), self._driver)
            return Probe(recipe, ncu.read, missing=missing)
        mounts = (*device_mounts(), *ncu.mounts(program))
        folders = search_path(driver.library_mounts())
        environment = {"LD_LIBRARY_PATH": folders, "CUDA_CACHE_DISABLE": "1", "HOME": "/tmp"}
        recipe = Recipe(self._alone(arch, flags), self._driver, mounts)
        return Probe(recipe, ncu.read, ncu.command(program), environment)

    def _alone(self, arch: str, flags: Sequence[str]) -> tuple[str, ...]:
        """The compiler's command for a program of its own, that tools can name lines of."""
        options = ["-cudart", "shared", "-std=c++17", "-O3", "-lineinfo"]
        options += ["-Xlinker", "-rpath", "-Xlinker", str(self._library_folder())]
        return (self._nvcc(), *options, *code_for(arch), *flags)

    def _check(self, name: str, program: str, missing: str) -> Check:
        options = ("--error-exitcode", "99", "--print-limit", "3", *_SANITIZERS[name])
        prefix = (program, "--tool", name, *options)
        folders = "" if missing else search_path(driver.library_mounts())
        environment = {"LD_LIBRARY_PATH": folders, "CUDA_CACHE_DISABLE": "1"}
        verdict = functools.partial(reports.compute_sanitizer, name)
        return Check(prefix, environment, verdict, (name,), missing)

    @staticmethod
    def _driver(signature: Signature) -> str:
        helper = (WORKER_SOURCES / "tensor_map.hpp").read_text(encoding="utf-8")
        return drivers.cuda(signature, helper.replace("#pragma once", ""))

    def defines(self, source: str, header: str) -> list[str]:
        """Leave large headers out where the source names nothing of them."""
        return unneeded_headers(source, header)

    def resources(self, log: str) -> tuple[Resources, ...]:
        """Registers, shared memory, stack and spills of each kernel."""
        return ptxas.resources(log)

    def program(self, device: str, cache: Path) -> Program:
        """The worker for ``cuda:N``, with the driver's libraries and device nodes."""
        facts = driver.device(driver.ordinal(device))
        path = self.build_worker(facts.arch, cache)
        ours = libraries(path) + libraries(driver.library_path())
        found = device_mounts()
        environment = {
            "LD_LIBRARY_PATH": search_path((*ours, *driver.library_mounts())),
            "CUDA_VISIBLE_DEVICES": facts.uuid,
            "CUDA_MODULE_LOADING": "EAGER",  # nothing must be loaded during a capture
            "CUDA_CACHE_DISABLE": "1",
        }
        mounts = tuple(dict.fromkeys((*ours, *found)))
        return Program(path, mounts, environment, True, False, driver.device_nodes())

    def buffers(self, tensors: Sequence[TensorSpec], index: int) -> Buffers:
        """Raw allocations, shown through CUDA IPC."""
        return CudaBuffers(tensors, index)

    def build_worker(self, arch: str, cache: Path) -> Path:
        """Compile the worker for a chip, unless the cache has it."""
        # Of our functions a candidate sees the header's helper and nothing else.
        export = "-rdynamic,-fvisibility=hidden"
        options = ["-O2", "-std=c++17", "-cudart", "shared", "-Xcompiler", export]
        options += ["-Xlinker", "-rpath", "-Xlinker", str(self._library_folder())]
        options += ["-Xlinker", "--no-as-needed", "-lm", "-ldl", "-lrt", "-lpthread"]
        command = [self._nvcc(), *options, *code_for(arch)]
        return build(f"cuda-{arch}", WORKER, command, cache)

    def _library_folder(self) -> Path:
        """Where the toolkit's libcudart is."""
        folders = [path.parent for path in self._toolkit().glob("lib*/libcudart.so")]
        return folders[0] if folders else self._toolkit() / "lib64"

    def _toolkit(self) -> Path:
        if why := self.missing():
            raise RuntimeError(why)
        return Path(str(toolchain.cuda_toolkit()))

    def _nvcc(self) -> str:
        return str(self._toolkit() / "bin" / "nvcc")


def device_mounts() -> tuple[Mount, ...]:
    """The driver's libraries, its device nodes, and what it reads of the system."""
    names = (*_DEVICES, *driver.device_nodes())
    devices = tuple(Mount(Path(name), device=True) for name in names)
    folders = tuple(Mount(Path(name)) for name in _SYSTEM_FOLDERS)
    return (*driver.library_mounts(), *folders, *devices)


def chip(arch: str) -> str:
    """The chip that code is made for: ``90a`` for ``sm_90`` and ``sm_90a``, ``89`` for ``sm_89``.

    Raises:
        ValueError: ``arch`` is no CUDA architecture.
    """
    match = re.fullmatch(r"sm_(\d{2,3})[af]?", arch)
    if match is None:
        raise ValueError(f"{arch!r} is no CUDA architecture; write it as sm_89 or sm_90a")
    return match[1] + ("a" if match[1] in _SPECIFIC else "")


def code_for(arch: str) -> list[str]:
    """nvcc's options for one chip. Raises ValueError as `chip`."""
    name = chip(arch)
    return ["-gencode", f"arch=compute_{name},code=sm_{name}"]


def make() -> Backend:
    """The backend."""
    return Cuda()
