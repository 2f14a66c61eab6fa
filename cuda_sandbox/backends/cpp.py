"""C++ on the CPU: g++ or clang++, OpenMP."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from cuda_sandbox import drivers, reports, toolchain, vectorised
from cuda_sandbox.backend import Backend, Check, Checks
from cuda_sandbox.buffers import Buffers, HostBuffers
from cuda_sandbox.devices import cpu
from cuda_sandbox.profiler import Probe
from cuda_sandbox.programs import Program, build, libraries, search_path
from cuda_sandbox.screen import Rules
from cuda_sandbox.standalone import Recipe
from cuda_sandbox.tensor import TensorSpec
from cuda_sandbox.toolchain import Toolchain

WORKER = (
    "cpp_worker.cpp",
    "candidate.hpp",
    "crash.hpp",
    "jail.hpp",
    "mapping.hpp",
    "protocol.hpp",
    "seccomp.hpp",
)


class Cpp(Backend):
    """One shared object per kernel, for this CPU (``native``) or a named ``-march``."""

    name = "cpp"
    suffix = ".cpp"
    device = "cpu"
    rules = Rules()
    allowed_flags = (
        r"-O[123s] -Ofast -ffast-math -fno-math-errno -fno-trapping-math -fassociative-math"
        r" -freciprocal-math -fno-signed-zeros -ffinite-math-only -funroll-loops"
        r" -ffp-contract=(?:fast|on|off) -mprefer-vector-width=(?:128|256|512) -fno-exceptions"
    )

    def missing(self) -> str:
        """Whether there is a compiler."""
        if toolchain.host_compiler() is None:
            return "no C++ compiler: install g++ or clang++, or set CXX"
        return ""

    def identity(self, arch: str) -> str:
        """Compiler, and the CPU itself if ``arch`` is ``native``."""
        if not re.fullmatch(r"[A-Za-z0-9_.+-]+", arch):
            raise ValueError(f"{arch!r} is no CPU architecture; use native or a name for -march")
        where = toolchain.cpu_fingerprint() if arch == "native" else arch
        return f"{toolchain.version(self._compiler())} {where} {' '.join(self.command(arch, ()))}"

    def command(self, arch: str, flags: Sequence[str]) -> list[str]:
        """Optimised, with OpenMP; the kernel's own flags last."""
        few = "-ferror-limit=5" if self._is_clang() else "-fmax-errors=5"
        options = f"-shared -fPIC -std=c++20 -O3 -march={arch} -fopenmp {few}".split()
        return [self._compiler(), *options, *flags]

    def toolchain(self) -> Toolchain:
        """The system's folders, and the compiler's own if it lives elsewhere."""
        compiler = self._compiler()
        path = f"{Path(compiler).parent}:/usr/bin:/bin"
        mounts = toolchain.system_mounts() + toolchain.prefix_mounts(compiler)
        return Toolchain(mounts, {"PATH": path, "LC_ALL": "C.UTF-8", "TMPDIR": "/tmp"})

    def program(self, device: str, cache: Path) -> Program:
        """The worker, with the libraries that kernels may use linked into it."""
        del device
        libs = [
            "-lm",
            "-ldl",
            *(["-lmvec"] if toolchain.has_vector_maths(self._compiler()) else []),
        ]
        options = ["-O2", "-std=c++17", "-fopenmp", "-Wl,--no-as-needed", *libs]
        path = build("cpp", WORKER, [self._compiler(), *options], cache)
        mounts = libraries(path)
        # Threads that spin long after their work would look as if they worked outside the clock.
        omp = {"OMP_DYNAMIC": "false", "GOMP_SPINCOUNT": "1000", "KMP_BLOCKTIME": "0"}
        environment = {"LD_LIBRARY_PATH": search_path(mounts), **omp}
        return Program(path, mounts, environment, flush_bytes=2 * cpu().cache_bytes)

    def buffers(self, tensors: Sequence[TensorSpec], index: int) -> Buffers:
        """Memory files."""
        del index
        return HostBuffers(tensors)

    def checks(self, arch: str, flags: Sequence[str]) -> Checks:
        """AddressSanitizer and UndefinedBehaviorSanitizer in one run."""
        options = [
            "-std=c++20",
            "-O1",
            "-g",
            "-fno-omit-frame-pointer",
            "-fsanitize=address,undefined",
        ]
        command = (self._compiler(), *options, f"-march={arch}", "-fopenmp", *flags)
        environment = {"ASAN_OPTIONS": "detect_leaks=0", "UBSAN_OPTIONS": "print_stacktrace=0"}
        run = Check((), environment, reports.gcc_sanitizers, ("address", "undefined"))
        return Checks(command, drivers.cpp, (run,))

    def probe(self, arch: str, flags: Sequence[str]) -> Probe:
        """What the compiler says of the loops it vectorised; nothing is run."""
        options = ("-std=c++20", "-O3", f"-march={arch}", "-fopenmp", *flags)
        told = vectorised.options(self._is_clang())
        recipe = Recipe((self._compiler(), *options, *told), drivers.cpp)
        return Probe(recipe, vectorised.read)

    def _compiler(self) -> str:
        if why := self.missing():
            raise RuntimeError(why)
        return str(toolchain.host_compiler())

    def _is_clang(self) -> bool:
        return "clang" in toolchain.version(self._compiler()).lower()


def make() -> Backend:
    """The backend."""
    return Cpp()
