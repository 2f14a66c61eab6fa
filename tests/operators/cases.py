"""Small tasks of every family in awkward shapes, with what they should compute in float64."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuda_sandbox.signature import Role, TensorSpec
from fitness.description import Node, TaskDescription
from tests.operators.workbench import NUMPY, ref, task

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Case:
    """A task, the family that should take it, and the reference on float64 arrays."""

    name: str
    family: str
    task: TaskDescription
    truth: Callable[..., NDArray[Any]]

    def inputs(self, scale: float = 1.0, shift: float = 0.0) -> list[NDArray[Any]]:
        """Normal numbers in the task's types."""
        rng = np.random.default_rng(7)
        return [
            (rng.normal(size=spec.shape) * scale + shift).astype(NUMPY[spec.dtype])
            for spec in self.task.signature.arguments
        ]

    def error(self, inputs: list[NDArray[Any]], out: NDArray[Any]) -> float:
        """``max|y-t| / rms(t)``; for indices the number of wrong ones."""
        truth = self.truth(*(array.astype(np.float64) for array in inputs)).reshape(out.shape)
        if out.dtype == np.int64:
            return float((out != truth).sum())
        rms = math.sqrt(float((truth**2).mean())) or 1.0
        return float(np.abs(out.astype(np.float64) - truth).max() / rms)

    @property
    def tolerance(self) -> float:
        """A few units in the last place of the task's type."""
        return {"float32": 1e-5, "float16": 4e-3, "int64": 0.0}[
            self.task.signature.outputs[0].dtype
        ]


def one(
    name: str,
    family: str,
    op: str,
    shapes: Mapping[str, tuple[int, ...]],
    out: tuple[int, ...],
    truth: Callable[..., NDArray[Any]],
    *args: Any,
    dtype: str = "float32",
    result: str | None = None,
    **kwargs: Any,
) -> Case:
    """A task of one operation on all its tensors, followed by ``args`` and ``kwargs``."""
    node = Node("y", op, (*map(ref, shapes), *args), tuple(kwargs.items()), out, result or dtype)
    return Case(name, family, task(tensors(shapes, dtype), [node], name), truth)


def tensors(shapes: Mapping[str, tuple[int, ...]], dtype: str = "float32") -> list[TensorSpec]:
    """Inputs by name."""
    return [TensorSpec(name, dtype, shape, Role.INPUT) for name, shape in shapes.items()]


def softmax(x: Floats) -> Floats:
    """Over the last dimension."""
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def log_softmax(x: Floats) -> Floats:
    """Over the last dimension."""
    x = x - x.max(-1, keepdims=True)
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


def layer_norm(x: Floats, weight: Floats, bias: Floats) -> Floats:
    """Over the weight's dimensions."""
    axes = tuple(range(x.ndim - weight.ndim, x.ndim))
    mean = x.mean(axes, keepdims=True)
    return (x - mean) / np.sqrt(x.var(axes, keepdims=True) + 1e-5) * weight + bias


def rms_norm(axis: int) -> Callable[..., Floats]:
    """Over one dimension, with a weight or without."""

    def norm(x: Floats, weight: Floats | float = 1.0) -> Floats:
        return x / np.sqrt((x * x).mean(axis, keepdims=True) + 1e-6) * weight

    return norm


def convolution(stride: tuple[int, int], pad: tuple[int, int]) -> Callable[..., Floats]:
    """NCHW, as PyTorch has it."""

    def convolve(x: Floats, weight: Floats, bias: Floats | None = None) -> Floats:
        x = np.pad(x, ((0, 0), (0, 0), (pad[0],) * 2, (pad[1],) * 2))
        kernel = weight.shape[2:]
        windows = np.lib.stride_tricks.sliding_window_view(x, kernel, (2, 3))
        windows = windows[:, :, :: stride[0], :: stride[1]]
        out = np.einsum("nchwij,fcij->nfhw", windows, weight)
        return out if bias is None else out + bias[:, None, None]

    return convolve


def pooled(x: Floats, size: int, step: int) -> Floats:
    """ReLU, then maxima of square windows."""
    windows = np.lib.stride_tricks.sliding_window_view(x, (size, size), (2, 3))
    return np.maximum(windows[:, :, ::step, ::step].max((-1, -2)), 0)


def attention(causal: bool) -> Callable[..., Floats]:
    """Over stacks of matrices."""

    def attend(q: Floats, k: Floats, v: Floats) -> Floats:
        scores = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
        if causal:
            seen = np.tril(np.ones(scores.shape[-2:], bool))
            scores = np.where(seen, scores, -np.inf)
        return softmax(scores) @ v

    return attend


def rms_by_hand(
    name: str, shape: tuple[int, ...], dim: int, weight: tuple[int, ...] | None
) -> Case:
    """``x * rsqrt(mean(x^2, dim) + 1e-6)``, times a weight or not."""
    small = tuple(1 if d == dim else size for d, size in enumerate(shape))
    nodes = [
        Node("square", "aten.pow.Tensor_Scalar", (ref("x"), 2), (), shape, "float32"),
        Node("mean", "aten.mean.dim", (ref("square"), [dim], True), (), small, "float32"),
        Node("add", "aten.add.Tensor", (ref("mean"), 1e-6), (), small, "float32"),
        Node("rsqrt", "aten.rsqrt.default", (ref("add"),), (), small, "float32"),
        Node("mul", "aten.mul.Tensor", (ref("x"), ref("rsqrt")), (), shape, "float32"),
    ]
    shapes = {"x": shape}
    if weight is not None:
        shapes["w"] = weight
        nodes.append(Node("out", "aten.mul.Tensor", (ref("w"), ref("mul")), (), shape, "float32"))
    return Case(name, "layer_norm", task(tensors(shapes), nodes, name), rms_norm(dim))


def conv_block(
    name: str, x: tuple[int, ...], weight: tuple[int, ...], pad: int, size: int, step: int
) -> Case:
    """Convolution of stride 1, ReLU, max pooling."""
    conv = (x[0], weight[0], *(e + 2 * pad - k + 1 for e, k in zip(x[2:], weight[2:], strict=True)))
    out = (*conv[:2], *((e - size) // step + 1 for e in conv[2:]))
    given = (ref("x"), ref("weight"), ref("bias"), [1, 1], [pad, pad])
    nodes = [
        Node("conv", "aten.conv2d.default", given, (), conv, "float32"),
        Node("relu", "aten.relu.default", (ref("conv"),), (), conv, "float32"),
        Node(
            "pool",
            "aten.max_pool2d.default",
            (ref("relu"), [size, size], [step, step]),
            (),
            out,
            "float32",
        ),
    ]
    shapes = {"x": x, "weight": weight, "bias": weight[:1]}

    def truth(x: Floats, weight: Floats, bias: Floats) -> Floats:
        return pooled(convolution((1, 1), (pad, pad))(x, weight, bias), size, step)

    return Case(name, "conv_block", task(tensors(shapes), nodes, name), truth)


def pointwise(name: str, dtype: str = "float32") -> Case:
    """``where(x * s + b > 0, tanh(.), expm1(.)) * sigmoid(y)``, with broadcasting."""
    shape = (3, 5, 19)

    def node(label: str, op: str, *args: Any, dtype: str = dtype) -> Node:
        return Node(label, f"aten.{op}", args, (), shape, dtype)

    nodes = [
        node("m", "mul.Tensor", ref("x"), ref("s")),
        node("a", "add.Tensor", ref("m"), ref("b")),
        node("c", "gt.Scalar", ref("a"), 0, dtype="bool"),
        node("t", "tanh.default", ref("a")),
        node("e", "expm1.default", ref("a")),
        node("w", "where.self", ref("c"), ref("t"), ref("e")),
        node("g", "sigmoid.default", ref("y")),
        node("out", "mul.Tensor", ref("w"), ref("g")),
    ]

    def truth(x: Floats, s: Floats, b: Floats, y: Floats) -> Floats:
        a = x * s + b
        chosen = np.where(a > 0, np.tanh(a), np.expm1(np.minimum(a, 0)))
        return chosen / (1 + np.exp(-y))

    given = tensors({"x": shape, "s": (19,), "b": (5, 1), "y": shape}, dtype)
    return Case(name, "elementwise", task(given, nodes, name), truth)


def gelu(x: Floats) -> Floats:
    """The exact form."""
    return x * 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def layer_norm_case(shape: tuple[int, ...], normalised: tuple[int, ...]) -> Case:
    """With weight and bias."""
    given = (ref("x"), list(normalised), ref("w"), ref("b"), 1e-5)
    node = Node("y", "aten.native_layer_norm.default", given, (), shape, "float32")
    leaves = tensors({"x": shape, "w": normalised, "b": normalised})
    return Case("layer norm", "layer_norm", task(leaves, [node], "layer norm"), layer_norm)


def reduction(
    name: str, op: str, shape: tuple[int, ...], dim: int, truth: Callable[..., Any], **kwargs: Any
) -> Case:
    """Over one dimension; ``dtype`` and ``result`` as in `one`, the rest goes to the operation."""
    out = tuple(size for d, size in enumerate(shape) if d != dim)
    given = dim if "arg" in op else [dim]
    return one(name, "reduction", f"aten.{op}", {"x": shape}, out, truth, given, **kwargs)


def products() -> list[Case]:
    """Matrix products by their several names."""

    def linear(x: Floats, w: Floats, b: Floats) -> Floats:
        return x @ w.T + b

    halves = {"x": (5, 33), "w": (47, 33), "b": (47,)}
    square = {"a": (37, 300), "b": (300, 45)}
    vector = {"a": (9, 70), "b": (70, 1)}
    stack = {"a": (3, 4, 6), "b": (3, 6, 5)}
    return [
        one("matmul", "matmul", "aten.mm.default", square, (37, 45), np.matmul),
        one("matrix times vector", "matmul", "aten.matmul.default", vector, (9, 1), np.matmul),
        one("stacked products", "matmul", "aten.bmm.default", stack, (3, 4, 5), np.matmul),
        one(
            "linear of halves",
            "matmul",
            "aten.linear.default",
            halves,
            (5, 47),
            linear,
            dtype="float16",
        ),
    ]


def softmaxes() -> list[Case]:
    """Rows of several lengths."""
    long, halves = (1, 2, 6000), {"x": (3, 70)}
    op, family = "aten.softmax.int", "softmax"
    return [
        one("softmax", family, op, {"x": (5, 37)}, (5, 37), softmax, -1),
        one("softmax of whole vectors", family, op, {"x": long}, long, softmax, 2),
        one("softmax of halves", family, op, halves, (3, 70), softmax, 1, dtype="float16"),
        one(
            "softmax of one column",
            family,
            "aten._softmax.default",
            {"x": (3, 1)},
            (3, 1),
            softmax,
            1,
            False,
        ),
        one(
            "log softmax",
            family,
            "aten.log_softmax.int",
            {"x": (2, 100)},
            (2, 100),
            log_softmax,
            1,
        ),
    ]


def convolutions() -> list[Case]:
    """By both spellings."""
    uneven = {"x": (2, 3, 19, 17), "w": (21, 3, 5, 3), "b": (21,)}
    plain = {"x": (1, 4, 6, 7), "w": (5, 4, 3, 3)}
    full = (None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1)
    return [
        one(
            "convolution",
            "conv",
            "aten.conv2d.default",
            uneven,
            (2, 21, 9, 10),
            convolution((2, 2), (1, 2)),
            [2, 2],
            [1, 2],
        ),
        one(
            "convolution of halves",
            "conv",
            "aten.convolution.default",
            plain,
            (1, 5, 6, 7),
            convolution((1, 1), (1, 1)),
            *full,
            dtype="float16",
        ),
    ]


def attentions() -> list[Case]:
    """Plain and causal."""
    uneven = {"q": (2, 7, 13), "k": (2, 11, 13), "v": (2, 11, 5)}
    shape = (1, 2, 70, 16)
    same = dict.fromkeys("qkv", shape)
    op = "aten.scaled_dot_product_attention.default"
    return [
        one("attention", "attention", op, uneven, (2, 7, 5), attention(False)),
        one(
            "causal attention of halves",
            "attention",
            op,
            same,
            shape,
            attention(True),
            None,
            0.0,
            True,
            dtype="float16",
        ),
    ]


CUBE = (3, 5, 37)
CASES = (
    *softmaxes(),
    layer_norm_case((3, 5, 1000), (5, 1000)),
    rms_by_hand("RMS norm of rows", (7, 133), 1, (133,)),
    rms_by_hand("RMS norm of columns", (2, 70, 5, 9), 1, None),
    *products(),
    *convolutions(),
    conv_block("convolution, ReLU, pooling", (2, 3, 13, 12), (19, 3, 3, 3), 1, 3, 2),
    pointwise("pointwise chain"),
    pointwise("pointwise chain of halves", "float16"),
    one("GELU", "elementwise", "aten.gelu.default", {"x": (6, 64)}, (6, 64), gelu),
    reduction("sum of rows", "sum.dim_IntList", (3, 5000), 1, lambda x: x.sum(1)),
    reduction("mean of columns", "mean.dim", CUBE, 1, lambda x: x.mean(1)),
    reduction("first largest", "argmax.default", CUBE, 1, lambda x: x.argmax(1), result="int64"),
    reduction("first smallest", "argmin.default", CUBE, 2, lambda x: x.argmin(2), result="int64"),
    reduction("largest halves", "amax.default", CUBE, 2, lambda x: x.max(2), dtype="float16"),
    reduction("variance", "var.correction", (2, 9000), 1, lambda x: x.var(1, ddof=1), correction=1),
    reduction("deviation", "std.correction", CUBE, 1, lambda x: x.std(1), correction=0),
    *attentions(),
)
