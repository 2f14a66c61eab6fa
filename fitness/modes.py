"""The ways in which PyTorch may run a task, so that no kernel is compared with a weak one."""

from __future__ import annotations

import contextlib
import copy
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from cuda_sandbox.cache import cache_dir
from fitness.evaluation import Tier
from fitness.reference import exact

if TYPE_CHECKING:
    from fitness.description import TaskDescription
    from fitness.loaded import LoadedTask

Call = Callable[[], object]
Prepared = contextlib.AbstractContextManager[Call]

_NAMES = """
    matmul mm bmm mv dot addmm addbmm baddbmm linear bilinear einsum tensordot cdist convolution
    conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d lstm gru rnn_tanh
    rnn_relu scaled_dot_product_attention
"""
_PRODUCTS = frozenset(_NAMES.split())
_IMAGES = frozenset({"conv2d", "conv_transpose2d", "convolution"})


@dataclass(frozen=True, slots=True)
class Facts:
    """What decides which modes apply: ``tier`` is what PyTorch's flags as they are compute in.

    ``products``: whether there are matrix products or convolutions (assumed where the task could
    not be traced); ``images``: convolutions of 4-D tensors; ``single``: floats are float32.
    """

    on_gpu: bool
    tier: Tier | None
    products: bool
    images: bool
    single: bool

    @classmethod
    def of(cls, task: TaskDescription, device: torch.device, tier: Tier | None) -> Facts:
        """The facts of a task on a device."""
        called = {node.op.split(".")[1] for node in task.graph if node.op.startswith("aten.")}
        floats = {s.dtype for s in task.signature.arguments if "float" in s.dtype}
        return cls(
            on_gpu=device.type == "cuda",
            tier=tier,
            products=not task.graph or bool(called & _PRODUCTS),
            images=not task.graph or bool(called & _IMAGES),
            single=floats == {"float32"},
        )

    @property
    def coarse(self) -> bool:
        """Whether the flags as they are make PyTorch less precise than float32."""
        return self.on_gpu and self.tier not in (Tier.FP32, None)


@dataclass(frozen=True, slots=True)
class Mode:
    """One way to run PyTorch. ``tier`` is its precision; None is that of the flags as they are.

    ``slow``: getting it ready compiles, which may take minutes or fail: done under a deadline.
    ``tunes``: it times its choices meanwhile, so nothing else is to use the device.
    """

    prepare: Callable[[LoadedTask], Prepared]
    applies: Callable[[Facts], bool]
    tier: Tier | None = None
    slow: bool = False
    tunes: bool = False


@contextlib.contextmanager
def eager(task: LoadedTask) -> Iterator[Call]:
    """As the task has it."""
    with task.prepared() as call:
        yield call


def _within(around: Callable[[], contextlib.AbstractContextManager[Any]], prepare: Any) -> Any:
    """``prepare`` with flags set around each call: in one sitting other modes come in between."""

    @contextlib.contextmanager
    def prepared(task: LoadedTask) -> Iterator[Call]:
        def flagged(call: Call) -> object:
            with around():
                return call()

        with prepare(task) as call:
            yield lambda: flagged(call)

    return prepared


@contextlib.contextmanager
def tf32() -> Iterator[None]:
    """Within, float32 products and convolutions may be computed in TF32."""
    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    saved = matmul.allow_tf32, cudnn.allow_tf32
    matmul.allow_tf32 = cudnn.allow_tf32 = True
    try:
        yield
    finally:
        matmul.allow_tf32, cudnn.allow_tf32 = saved


@contextlib.contextmanager
def graph(task: LoadedTask) -> Iterator[Call]:
    """One CUDA graph of eager's calls."""
    with task.prepared() as call:
        side = torch.cuda.Stream(task.device)
        with torch.cuda.stream(side):
            for _ in range(3):
                call()
        torch.cuda.current_stream(task.device).wait_stream(side)
        captured = torch.cuda.CUDAGraph()
        with torch.cuda.graph(captured):
            kept = call()
        yield captured.replay
        del kept


@contextlib.contextmanager
def channels_last(task: LoadedTask) -> Iterator[Call]:
    """Weights, inputs and outputs with their channels last, laid out before the clock starts."""
    layout = torch.channels_last

    def model(own: nn.Module) -> Callable[..., object]:
        return copy.deepcopy(own).to(memory_format=layout)  # type: ignore[call-overload,no-any-return]

    def placed(tensor: Tensor) -> Tensor:
        return tensor.contiguous(memory_format=layout) if tensor.dim() == 4 else tensor

    with task.prepared(model, placed) as call:
        yield call


@contextlib.contextmanager
def half(task: LoadedTask) -> Iterator[Call]:
    """Under autocast to float16, with outputs of the task's own types: a kernel's terms."""
    types = [getattr(torch, spec.dtype) for spec in task.signature.outputs]

    def model(own: nn.Module) -> Callable[..., object]:
        def run(*arguments: Any) -> object:
            with torch.autocast(task.device.type, dtype=torch.float16):
                result = own(*arguments)
            return _typed(result, iter(types))

        return run

    with task.prepared(model) as call:
        yield call


def _typed(result: Any, types: Iterator[torch.dtype]) -> object:
    if isinstance(result, Tensor):
        return result.to(next(types))
    if isinstance(result, list | tuple):
        return [_typed(item, types) for item in result]
    return result


def compiled(mode: str | None = None) -> Callable[[LoadedTask], Prepared]:
    """torch.compile in one of its modes. What it builds is kept in the user's cache."""

    @contextlib.contextmanager
    def prepared(task: LoadedTask) -> Iterator[Call]:
        os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", str(cache_dir() / "inductor"))
        with task.prepared(lambda model: torch.compile(model, mode=mode)) as call:
            yield call

    return prepared


def _always(_: Facts) -> bool:
    return True


def _on_gpu(facts: Facts) -> bool:
    return facts.on_gpu


def _coarse(facts: Facts) -> bool:
    return facts.coarse


def _can_round(facts: Facts) -> bool:
    return facts.on_gpu and facts.products and facts.single


MODES: dict[str, Mode] = {
    "eager": Mode(eager, _always),
    "eager_tf32": Mode(_within(tf32, eager), _can_round, Tier.TF32),
    "eager_no_tf32": Mode(_within(exact, eager), _coarse, Tier.FP32),
    "half": Mode(half, _can_round, Tier.HALF),
    "graph": Mode(graph, _on_gpu),
    "channels_last": Mode(channels_last, lambda facts: facts.images),
    "compile": Mode(compiled(), _always, slow=True),
    "compile_no_tf32": Mode(_within(exact, compiled()), _coarse, Tier.FP32, slow=True),
    "compile_reduce_overhead": Mode(compiled("reduce-overhead"), _on_gpu, slow=True),
    "compile_max_autotune": Mode(compiled("max-autotune"), _on_gpu, slow=True, tunes=True),
}
"""Each makes PyTorch ready in one way and hands out a call on the task's own inputs."""
