"""Small task files for tests: written, described and loaded in this process."""

from __future__ import annotations

import textwrap
from pathlib import Path

from fitness.describe import describe_here
from fitness.description import TaskDescription
from fitness.loaded import LoadedTask

HEAD = """
import torch
from torch import nn
from torch.nn import functional as F

"""


def write(folder: Path, body: str, name: str = "task") -> Path:
    """A task file with the usual imports before ``body``."""
    path = folder / f"{name}.py"
    path.write_text(HEAD + textwrap.dedent(body))
    return path


def simple(forward: str, inputs: str, init: str = "pass") -> str:
    """A task of one expression."""
    parameters = forward.partition(":")[0]
    return f"""
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        {init}

    def forward(self, {parameters}):
        return {forward.partition(":")[2].strip()}


def get_inputs():
    return [{inputs}]


def get_init_inputs():
    return []
"""


def described(folder: Path, body: str) -> TaskDescription:
    """Described in this process: much faster than a child, without its deadline."""
    return describe_here(write(folder, body))


def loaded(folder: Path, body: str) -> LoadedTask:
    """Described and loaded in this process, on the CPU."""
    path = write(folder, body)
    return LoadedTask.load(path, describe_here(path), "cpu", 42)
