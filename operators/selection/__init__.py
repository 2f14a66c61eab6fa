"""Selection schemes: any suitable function of ``deap.tools``, or a file of this folder.

A file ``NAME.py`` holds ``select(individuals, k, **arguments)``, which answers with ``k`` of the
individuals (repeats are allowed) and draws from the global ``random``, as DEAP's own do. All
individuals have a valid fitness of one value, which is larger for the better.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any

from operators import extension

Select = Callable[..., list[Any]]

UNFIT = {
    "selNSGA2": "several objectives",
    "selNSGA3": "several objectives",
    "selNSGA3WithMemory": "several objectives",
    "selSPEA2": "several objectives",
    "selTournamentDCD": "several objectives",
    "selLexicase": "several objectives",
    "selEpsilonLexicase": "several objectives",
    "selAutomaticEpsilonLexicase": "several objectives",
    "selDoubleTournament": "individuals with a length",
}


def names() -> list[str]:
    """All schemes that fit: those of ``deap.tools``, then the files of this folder."""
    from deap import tools

    found = (name for name in dir(tools) if name.startswith("sel") and name not in UNFIT)
    deap = sorted(name for name in found if callable(getattr(tools, name)))
    return [*deap, *extension.names(__name__)]


def scheme(name: str, arguments: Mapping[str, Any]) -> Select:
    """``select(individuals, k)`` with ``arguments`` bound to it.

    Raises ValueError where the name or an argument does not fit; the message lists what does.
    """
    if name in UNFIT:
        needs = f"{name} needs {UNFIT[name]}, and fitness here is one number"
        raise ValueError(f"{needs}; those that fit: {', '.join(names())}")
    if name not in names():
        raise ValueError(extension.unknown("selection", name, names()))
    bound = partial(_function(name), **_checked(name, arguments))
    _try_out(name, bound)
    return bound


def _function(name: str) -> Select:
    from deap import tools

    if hasattr(tools, name):
        found: Select = getattr(tools, name)
    else:
        found = extension.load(__name__, "selection", name).select
    return found


def _checked(name: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    parameters = inspect.signature(_function(name)).parameters
    valid = {key: parameters[key] for key in parameters if key not in _OURS}
    for key in arguments:
        if key not in valid:
            raise ValueError(extension.unknown(f"argument of {name}", key, valid))
        if key in _COUNTS and not (isinstance(arguments[key], int) and arguments[key] >= 1):
            raise ValueError(
                f"{name}: {key} must be a whole number from 1 on, not {arguments[key]!r}"
            )
    for key, parameter in valid.items():
        if parameter.default is parameter.empty and key not in arguments:
            raise ValueError(f"{name} needs the argument {key}")
    return arguments


_OURS = ("individuals", "k", "fit_attr")
_COUNTS = ("tournsize",)


def _try_out(name: str, select: Select) -> None:
    """Run ``select`` once on three stand-ins, so that a bad value is found before the run."""
    from operators.chance import chance

    trio: Sequence[Any] = [
        SimpleNamespace(fitness=_StandIn(value), evaluation=None) for value in (1.0, 2.0, 3.0)
    ]
    try:
        with chance("try-out"):
            chosen = select(trio, 2)
    except Exception as error:  # any: it comes from a value in the user's file
        raise ValueError(f"{name} fails with these arguments: {error}") from error
    if len(chosen) != 2:
        raise ValueError(f"{name} answered with {len(chosen)} individuals where 2 were asked for")


class _StandIn:
    """As much of a ``deap.base.Fitness`` as a scheme may look at."""

    valid = True

    def __init__(self, value: float) -> None:
        self.values = self.wvalues = (value,)

    def __lt__(self, other: _StandIn) -> bool:
        return self.values < other.values

    def __gt__(self, other: _StandIn) -> bool:
        return self.values > other.values
