"""Load the candidate's file and make its ``ModelNew``."""

from __future__ import annotations

import importlib.util
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import nn

from cuda_sandbox.protocol import Failure
from fitness.module.runner.orders import Orders, Refused

NAME = "kernelevo_candidate"
CLASS = "ModelNew"


def load(source: Path) -> ModuleType:
    """The file, run as a module. Raises Refused."""
    spec = importlib.util.spec_from_file_location(NAME, source)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[NAME] = module
    with blamed(source, "importing it", Failure.NOT_IMPORTED):
        spec.loader.exec_module(module)
    return module


def build(module: ModuleType, orders: Orders, device: torch.device) -> nn.Module:
    """A ``ModelNew`` on ``device``. Raises Refused."""
    made = getattr(module, CLASS, None)
    if not (isinstance(made, type) and issubclass(made, nn.Module)):
        reason = f"the file defines no class {CLASS}(nn.Module), which is what is judged"
        raise Refused(Failure.BAD_OBJECT, reason)
    with blamed(orders.source, f"the constructor of {CLASS}"):
        model = _constructed(made, orders, device)
        if not isinstance(model, nn.Module):
            raise TypeError(f"it makes a {type(model).__name__}, which is no nn.Module")
        model.to(device)
    return model


def _constructed(made: type[nn.Module], orders: Orders, device: torch.device) -> Any:
    """Made on the device itself, as the reference is, where the constructor allows that."""
    if device.type == "cpu":
        return made(*orders.args, **orders.kwargs)
    try:
        with device:
            return made(*orders.args, **orders.kwargs)
    except (RuntimeError, TypeError):
        return made(*orders.args, **orders.kwargs)


@contextmanager
def blamed(source: Path, doing: str, failure: Failure = Failure.LAUNCH_ERROR) -> Iterator[None]:
    """Turn what the candidate's code raises into Refused, with the line of its file."""
    try:
        yield
    except Refused:
        raise
    except BaseException as error:  # SystemExit and the like are its answer too
        raise Refused(failure, described(source, doing, error)) from error


def described(source: Path, doing: str, error: BaseException) -> str:
    """``line 12: forward raised ValueError: ...``, in one line."""
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename == str(source)
    ]
    if isinstance(error, SyntaxError) and error.filename == str(source):
        lines.append(error.lineno)
    where = f"line {lines[-1]}: " if lines else ""
    text = _telling(str(error)) or type(error).__name__
    return f"{where}{doing} raised {type(error).__name__}: {text}"


def _telling(text: str) -> str:
    """The first compiler error in a long text, else its first line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if "error:" in line.lower() or line.startswith("error")]
    return (errors or lines or [""])[0]
