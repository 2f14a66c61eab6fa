"""Pointwise ATen operations as C++ expressions, the same in every language.

``{0}``, ``{1}``, ... are the tensor arguments, already computed; words in braces are numbers of the
call, written ``K(1.5f)``. Besides ``+ - * /`` and comparisons, the functions called are those named
``f_...``; each language's template defines them, ``K`` and ``f_where(condition, a, b)``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Formula:
    """A pattern with the names and defaults of the numbers after its ``tensors`` arguments."""

    pattern: str
    numbers: tuple[tuple[str, float], ...] = ()


def _f(pattern: str, **numbers: float) -> Formula:
    return Formula(pattern, tuple(numbers.items()))


FORMULAS: Mapping[str, Formula] = {
    "relu": _f("f_max({0}, K(0.0f))"),
    "relu6": _f("f_min(f_max({0}, K(0.0f)), K(6.0f))"),
    "sigmoid": _f("f_sigmoid({0})"),
    "tanh": _f("f_tanh({0})"),
    "silu": _f("{0} * f_sigmoid({0})"),
    "mish": _f("{0} * f_tanh(f_softplus({0}))"),
    "log_sigmoid": _f("-f_softplus(-{0})"),
    "abs": _f("f_abs({0})"),
    "neg": _f("-{0}"),
    "exp": _f("f_exp({0})"),
    "expm1": _f("f_expm1({0})"),
    "log": _f("f_log({0})"),
    "log1p": _f("f_log1p({0})"),
    "sqrt": _f("f_sqrt({0})"),
    "rsqrt": _f("K(1.0f) / f_sqrt({0})"),
    "reciprocal": _f("K(1.0f) / {0}"),
    "square": _f("{0} * {0}"),
    "sin": _f("f_sin({0})"),
    "cos": _f("f_cos({0})"),
    "erf": _f("f_erf({0})"),
    "floor": _f("f_floor({0})"),
    "ceil": _f("f_ceil({0})"),
    "sign": _f("f_where({0} > K(0.0f), K(1.0f), f_where({0} < K(0.0f), K(-1.0f), K(0.0f)))"),
    "hardtanh": _f("f_min(f_max({0}, {min_val}), {max_val})", min_val=-1.0, max_val=1.0),
    "hardsigmoid": _f("f_min(f_max({0} + K(3.0f), K(0.0f)), K(6.0f)) * K(0.166666667f)"),
    "hardswish": _f("{0} * (f_min(f_max({0} + K(3.0f), K(0.0f)), K(6.0f)) * K(0.166666667f))"),
    "leaky_relu": _f("f_where({0} > K(0.0f), {0}, {0} * {slope})", slope=0.01),
    "threshold": _f("f_where({0} > {threshold}, {0}, {value})", threshold=0.0, value=0.0),
    "softplus": _f(
        "f_where({0} * {beta} > {threshold}, {0}, f_softplus({0} * {beta}) / {beta})",
        beta=1.0,
        threshold=20.0,
    ),
    "elu": _f(
        "{scale} * f_where({0} > K(0.0f), {0}, {alpha} * f_expm1(f_min({0}, K(0.0f)) * "
        "{input_scale}))",
        alpha=1.0,
        scale=1.0,
        input_scale=1.0,
    ),
    "celu": _f(
        "f_where({0} > K(0.0f), {0}, {alpha} * f_expm1(f_min({0}, K(0.0f)) / {alpha}))", alpha=1.0
    ),
    "selu": _f(
        "K(1.05070099f) * f_where({0} > K(0.0f), {0}, K(1.67326324f) * "
        "f_expm1(f_min({0}, K(0.0f))))"
    ),
    "mul": _f("{0} * {1}"),
    "div": _f("{0} / {1}"),
    "maximum": _f("f_max({0}, {1})"),
    "minimum": _f("f_min({0}, {1})"),
    "clamp_min": _f("f_max({0}, {1})"),
    "clamp_max": _f("f_min({0}, {1})"),
    "where": _f("f_where({0}, {1}, {2})"),
    "gt": _f("{0} > {1}"),
    "ge": _f("{0} >= {1}"),
    "lt": _f("{0} < {1}"),
    "le": _f("{0} <= {1}"),
    "eq": _f("{0} == {1}"),
    "ne": _f("{0} != {1}"),
    "prelu": _f("f_where({0} > K(0.0f), {0}, {0} * {1})"),
}


def number(value: float) -> str:
    """A Python number as a literal of type float."""
    if math.isinf(value):
        return "K(INFINITY)" if value > 0 else "K(-INFINITY)"
    text = repr(float(value))
    return f"K({text}f)"


def expression(name: str, args: list[Any], kwargs: Mapping[str, Any]) -> str | None:
    """The expression of one call; arguments are strings (expressions) or numbers. None: unknown."""
    special = SPECIAL.get(name)
    if special is not None:
        return special(args, kwargs)
    formula = FORMULAS.get(name)
    unknown = set(kwargs) - {key for key, _ in formula.numbers} if formula else {"all"}
    if formula is None or unknown - {"inplace"}:
        return None
    needed = sum(f"{{{i}}}" in formula.pattern for i in range(3))
    if len(args) < needed:
        return None
    words = dict(formula.numbers)
    for (key, _), value in zip(formula.numbers, args[needed:], strict=False):
        words[key] = value
    words.update({key: kwargs[key] for key in words if key in kwargs})
    if any(not isinstance(value, int | float) for value in words.values()):
        return None
    if len(args) - needed > len(words):
        return None
    return formula.pattern.format(
        *map(term, args[:needed]), **{key: number(value) for key, value in words.items()}
    )


def term(value: Any) -> str:
    """An argument inside an expression."""
    return value if isinstance(value, str) else number(value)


def _scaled_sum(sign: str) -> Callable[[list[Any], Mapping[str, Any]], str | None]:
    def write(args: list[Any], kwargs: Mapping[str, Any]) -> str | None:
        alpha = kwargs.get("alpha", args[2] if len(args) > 2 else 1)
        second = term(args[1]) if alpha == 1 else f"{term(args[1])} * {number(alpha)}"
        return f"{term(args[0])} {sign} {second}"

    return write


def _rsub(args: list[Any], kwargs: Mapping[str, Any]) -> str | None:
    return _scaled_sum("-")([args[1], args[0], *args[2:]], {}) if not kwargs else None


def _power(args: list[Any], kwargs: Mapping[str, Any]) -> str | None:
    base, exponent = args[0], args[1]
    if not isinstance(exponent, int | float) or isinstance(base, int | float) or kwargs:
        return f"f_pow({term(base)}, {term(exponent)})"
    known = {
        2: "{0} * {0}",
        3: "{0} * {0} * {0}",
        4: "({0} * {0}) * ({0} * {0})",
        0.5: "f_sqrt({0})",
        -0.5: "K(1.0f) / f_sqrt({0})",
        -1: "K(1.0f) / {0}",
        1: "{0}",
    }
    return known.get(exponent, "f_pow({0}, " + number(exponent) + ")").format(base)


def _clamp(args: list[Any], kwargs: Mapping[str, Any]) -> str | None:
    low = kwargs.get("min", args[1] if len(args) > 1 else None)
    high = kwargs.get("max", args[2] if len(args) > 2 else None)
    text = term(args[0])
    text = text if low is None else f"f_max({text}, {term(low)})"
    return text if high is None else f"f_min({text}, {term(high)})"


def _gelu(args: list[Any], kwargs: Mapping[str, Any]) -> str | None:
    x = term(args[0])
    if kwargs.get("approximate", args[1] if len(args) > 1 else "none") == "tanh":
        inner = f"K(0.797884561f) * ({x} + K(0.044715f) * {x} * {x} * {x})"
        return f"K(0.5f) * {x} * (K(1.0f) + f_tanh({inner}))"
    return f"f_gelu({x})"


def _fused(sign: str) -> Callable[[list[Any], Mapping[str, Any]], str | None]:
    def write(args: list[Any], kwargs: Mapping[str, Any]) -> str | None:
        scale = kwargs.get("value", 1)
        product = f"{term(args[1])} {sign} {term(args[2])}"
        return f"{term(args[0])} + " + (product if scale == 1 else f"{number(scale)} * {product}")

    return write


def _div(args: list[Any], kwargs: Mapping[str, Any]) -> str | None:
    if kwargs.get("rounding_mode") is not None or len(args) > 2:
        return None
    return f"{term(args[0])} / {term(args[1])}"


SPECIAL: Mapping[str, Callable[[list[Any], Mapping[str, Any]], str | None]] = {
    "add": _scaled_sum("+"),
    "sub": _scaled_sum("-"),
    "rsub": _rsub,
    "div": _div,
    "pow": _power,
    "clamp": _clamp,
    "gelu": _gelu,
    "addcmul": _fused("*"),
    "addcdiv": _fused("/"),
}
