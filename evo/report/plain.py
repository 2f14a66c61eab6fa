"""Records as JSON values: what the reports hand to programs and to the page."""

from __future__ import annotations

import math
import re
import socket
from dataclasses import asdict, is_dataclass
from typing import Any

from fitness.evaluation import Evaluation, Interval

# an absolute path of two parts or more
PATH = re.compile(r"(?<![\w./<])/(?:[\w.+@-]+/)+([\w.+@-]*)")


def finite(value: Any) -> Any:
    """``value`` with infinities and NaN as None: JSON has no word for them."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return finite(asdict(value)) if is_dataclass(value) and not isinstance(value, type) else value


def interval(time: Interval | None) -> dict[str, float] | None:
    """``{median, low, high}`` in ms, or None."""
    return None if time is None else finite(time)


def verdict(evaluation: Evaluation | None) -> dict[str, Any]:
    """An evaluation as JSON values, in the words of ``kernelevo eval --json``."""
    if evaluation is None:
        return {"status": None, "correct": False, "reason": "not judged yet"}
    precision = evaluation.precision
    return {
        "status": str(evaluation.status),
        "correct": evaluation.correct,
        "reason": evaluation.reason,
        "precision": finite(precision) if precision else None,
        "time_ms": interval(evaluation.time_ms),
        "baselines": {
            name: {**finite(base.time_ms), "tier": base.tier}
            for name, base in evaluation.baselines.items()
        },
        "speedup": finite(evaluation.speedup),
        "roofline_share": finite(evaluation.roofline_share),
        "roofline_ceiling": evaluation.roofline_ceiling,
        "device": evaluation.device,
        "seconds": finite(evaluation.seconds),
        "resources": [finite(each) for each in evaluation.resources],
        "certificate": finite(evaluation.certificate),
        "execution": finite(evaluation.execution),
        "bottleneck": finite(evaluation.bottleneck) if evaluation.bottleneck else None,
    }


def scrubbed(text: str) -> str:
    """``text`` without absolute paths (their last part stays) and without this host's name."""
    text = PATH.sub(lambda hit: f".../{hit[1]}", text)
    host = socket.gethostname().partition(".")[0]
    if len(host) > 3:
        text = re.sub(rf"\b{re.escape(host)}\b", "HOST", text)
    return text
