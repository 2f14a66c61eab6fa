"""A task file run in this process: its ``Model``, constructor arguments and inputs.

Everything the file does wrong becomes a TaskError that names the file, the line and a remedy.
"""

from __future__ import annotations

import contextlib
import importlib.util
import inspect
import random
import sys
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from fitness.errors import TaskError


@contextlib.contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Python's, numpy's and torch's global generators seeded, and put back at the end."""
    numpy = sys.modules.get("numpy")
    python_state = random.getstate()
    numpy_state = numpy.random.get_state() if numpy else None
    devices = range(torch.cuda.device_count()) if torch.cuda.is_initialized() else ()
    with torch.random.fork_rng(devices=devices):
        random.seed(seed)
        torch.manual_seed(seed)
        if numpy:
            numpy.random.seed(seed % 2**32)
        try:
            yield
        finally:
            random.setstate(python_state)
            if numpy:
                numpy.random.set_state(numpy_state)


class Elsewhere(TorchFunctionMode):
    """Whoever asks for a CUDA device gets ``device``: some files name one in get_inputs()."""

    def __init__(self, device: torch.device) -> None:
        super().__init__()
        self.device = device

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        if func is torch.Tensor.cuda:
            return args[0].to(self.device)
        given = {key: self._moved(value) for key, value in (kwargs or {}).items()}
        return func(*(self._moved(value) for value in args), **given)

    def _moved(self, value: Any) -> Any:
        named = isinstance(value, str) and value.partition(":")[0] == "cuda"
        meant = isinstance(value, torch.device) and value.type == "cuda"
        return self.device if named or meant else value


@contextlib.contextmanager
def blamed(path: Path, doing: str) -> Iterator[None]:
    """Turn whatever the task's code raises into a TaskError for the file and line to blame."""
    try:
        yield
    except TaskError:
        raise
    except ModuleNotFoundError as error:
        raise TaskError(
            f"{_where(path, error)}: {doing} needs the module {error.name!r}, which is not "
            f"installed here: pip install {(error.name or '').partition('.')[0]}"
        ) from error
    except (Exception, SystemExit) as error:
        kind = type(error).__name__
        text = str(error).strip()
        raise TaskError(f"{_where(path, error)}: {doing} failed: {kind}: {text}") from error


def _where(path: Path, error: BaseException) -> str:
    """``file:line`` of the innermost frame that lies in the task's own file."""
    if isinstance(error, SyntaxError) and error.filename == str(path) and error.lineno:
        return f"{path}:{error.lineno}"
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename == str(path)
    ]
    return f"{path}:{lines[-1]}" if lines else str(path)


@dataclass(frozen=True)
class TaskFile:
    """The executed module of a task."""

    path: Path
    module: ModuleType
    device: torch.device

    @classmethod
    def read(cls, path: Path, device: torch.device | None = None) -> TaskFile:
        """Run the file. Raises TaskError if that fails or it is no task.

        Where the file asks for a CUDA device, it gets ``device`` (the CPU, if None).
        """
        place = device or torch.device("cpu")
        with Elsewhere(place):
            module = _execute(path)
        model = getattr(module, "Model", None)
        if not (isinstance(model, type) and issubclass(model, nn.Module)):
            raise TaskError(f"{path}: has no class `Model(nn.Module)`, the reference to beat")
        if not callable(getattr(module, "get_inputs", None)):
            raise TaskError(
                f"{path}: has no function `get_inputs()`, which returns forward's inputs"
            )
        return cls(path, module, place)

    @property
    def elsewhere(self) -> contextlib.AbstractContextManager[object]:
        """What forward is to run in: nothing, unless it might name another device."""
        moved = self.device.type != "cuda" and "cuda" in self.path.read_text()
        return Elsewhere(self.device) if moved else contextlib.nullcontext()

    def build(self, seed: int) -> nn.Module:
        """A model with weights drawn with ``seed``. Raises TaskError."""
        args, kwargs = self.init_arguments()
        with blamed(self.path, "the constructor of Model"), seeded(seed), Elsewhere(self.device):
            model: nn.Module = self.module.Model(*args, **kwargs)
        return model

    def inputs(self, seed: int) -> tuple[Any, ...]:
        """What ``get_inputs()`` returns under ``seed``. Raises TaskError."""
        with blamed(self.path, "get_inputs()"), seeded(seed), Elsewhere(self.device):
            values = self.module.get_inputs()
        if isinstance(values, torch.Tensor):
            return (values,)
        if not isinstance(values, (list, tuple)):
            raise TaskError(
                f"{self.path}: get_inputs() returns {type(values).__name__}; "
                "it must return a list of forward's positional arguments"
            )
        return tuple(values)

    def init_arguments(self) -> tuple[list[Any], dict[str, Any]]:
        """The constructor's arguments: ``get_init_inputs()``'s list, or its ``[args, kwargs]``."""
        function = getattr(self.module, "get_init_inputs", None)
        if function is None:
            return [], {}
        with blamed(self.path, "get_init_inputs()"), seeded(0):
            values = function()
        if isinstance(values, dict):
            return [], values
        if not isinstance(values, (list, tuple)):
            raise TaskError(
                f"{self.path}: get_init_inputs() returns {type(values).__name__}; it must return "
                "a list of the constructor's arguments, or [arguments, keyword arguments]"
            )
        if (
            len(values) == 2
            and isinstance(values[0], (list, tuple))
            and isinstance(values[1], dict)
        ):
            return list(values[0]), values[1]
        return list(values), {}

    def init_names(self) -> dict[str, Any]:
        """The constructor's named arguments, defaults included."""
        args, kwargs = self.init_arguments()
        try:
            bound = inspect.signature(self.module.Model).bind(*args, **kwargs)
        except (TypeError, ValueError):
            return {}
        bound.apply_defaults()
        several = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
        kinds = bound.signature.parameters
        return {k: v for k, v in bound.arguments.items() if kinds[k].kind not in several or v}


def _execute(path: Path) -> ModuleType:
    """Run the file as a module of its own; its folder may hold helpers, found last."""
    name = f"kernelevo_task_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise TaskError(f"{path}: a task is a Python file; its name must end in .py")
    module = importlib.util.module_from_spec(spec)
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))
    sys.modules[name] = module  # dataclasses and pickle look their classes up there
    try:
        with blamed(path, "importing it"):
            spec.loader.exec_module(module)
    except TaskError:
        del sys.modules[name]
        raise
    return module
