"""Facts in words, as prompts tell them."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Iterator, Sequence

from cuda_sandbox.report import Resources, Status
from fitness.description import TaskDescription
from fitness.evaluation import Demand, Evaluation, Tier
from fitness.hardware import Ceilings
from fitness.roofline import compulsory_bytes
from operators.author import Brief, Specimen, Tried
from operators.idea import Category, Idea
from operators.writing.text import shortened, without_paths

LATENCY_S = 700e-9  # from memory, about, on a busy GPU
ENOUGH_FLOP_PER_BYTE = 10  # above it arithmetic may be what limits
LOG_LINES, LOG_CHARS = 40, 3000
TUNINGS = 12  # that are told of
IDEA_CHARS, ANCESTOR_CHARS, REASON_CHARS = 400, 1200, 160

_PRODUCTS = re.compile(r"mm|matmul|conv|linear|attention|einsum|dot|outer|lstm|gru")
_REDUCES = re.compile(
    r"softmax|norm|attention|logsumexp|loss|^(?:sum|mean|prod|var|std|any|all|a?max|a?min|argmax|"
    r"argmin|median|cum\w+|nanmean|nansum|topk|sort|kl_div|cross_entropy)$"
)
_KINDS = {
    "products": _PRODUCTS,
    "convolves": re.compile(r"conv"),
    "attends": re.compile(r"attention"),
    "reduces": _REDUCES,
}
_BASELINES = {
    "eager": "PyTorch eager",
    "compile": "torch.compile",
    "best": "the best of PyTorch at this precision",
}


def kinds(task: TaskDescription) -> dict[str, bool]:
    """What the task has in it: products, convolutions, ...; all where it could not be traced."""
    names = [node.op.split(".")[1] for node in task.graph if node.op.startswith("aten.")]
    return {
        kind: not names or any(pattern.search(name) for name in names)
        for kind, pattern in _KINDS.items()
    }


def demand(asked: Demand, task: TaskDescription) -> str:
    """What precision is asked for, and how it is found."""
    checked = (
        "Outputs are compared with a float64 reference on several distributions of inputs and "
        "weights: normal numbers, a large mean with a small spread (1000 +- 0.1), large (1e4), "
        "tiny (1e-6), constant rows, rare outliers. The worst counts; NaN or infinity where "
        "PyTorch is finite is wrong."
    )
    if asked.tolerance is not None:
        return (
            f"max|y - t| / rms(t) must be at most {asked.tolerance:g} for every output. {checked} "
            f"{_LOOSE[asked.tolerance >= 1e-3]}"
        )
    assert asked.tier is not None
    if _is_half(task):
        return f"{_HALF_TASK} {checked}"
    products = f" {_PRODUCTS_OF[asked.tier]}" if kinds(task)["products"] else ""
    return f"{_TIERS[asked.tier]}{products} {checked}"


_TIERS = {
    Tier.FP32: (
        "Tier fp32: the error (the largest of any element, over the output's rms) may be at most "
        "4 times that of PyTorch's own float32, without TF32. Sums over long rows need several "
        "partial sums."
    ),
    Tier.TF32: (
        "Tier tf32: the error may be at most 4 times that of PyTorch with operands rounded to "
        "TF32's 10 mantissa bits and float32 sums."
    ),
    Tier.HALF: (
        "Tier half: the error may be at most 4 times that of PyTorch with operands rounded to "
        "float16 and float32 sums."
    ),
}
_PRODUCTS_OF = {
    Tier.FP32: (
        "Sums of half or TF32 products are too coarse; with operands split into two halves each "
        "(three products) they are fine."
    ),
    Tier.TF32: (
        "Half operands have the same 10 bits and may be used where their range is kept by "
        "scaling; bfloat16 is too coarse."
    ),
    Tier.HALF: "Half operands are fine where their range is kept; sums stay in float32.",
}
_HALF_TASK = (
    "The error (the largest of any element, over the output's rms) may be at most 4 times that of "
    "PyTorch's own result in the task's type, which sums in float32 and rounds once at the end: "
    "do the same."
)
_LOOSE = {
    True: (
        "Half or TF32 operands with float32 sums are well within that, if the range of half is "
        "kept by scaling; so are fast approximations of exp and division. What is not computed at "
        "all is not."
    ),
    False: "That is tight: keep float32 sums and accurate functions.",
}


def _is_half(task: TaskDescription) -> bool:
    types = {spec.dtype for spec in task.signature.arguments if "float" in spec.dtype}
    return bool(types) and types <= {"float16", "bfloat16"}


def rates(peak: Ceilings | None) -> list[str]:
    """What the device can do at most, a line for memory and one for arithmetic."""
    if peak is None:
        return []
    units = [f"{peak.fp32 / 1e12:.0f} TFLOP/s fp32"]
    if peak.tf32 and peak.half:
        units += [f"{peak.tf32 / 1e12:.0f} TF32", f"{peak.half / 1e12:.0f} half on tensor cores"]
    return [
        f"peak {peak.bytes_per_s / 1e12:.3g} TB/s from memory (85 to 92% can be reached)",
        f"peak {', '.join(units)} (70 to 85% can be reached)",
    ]


def floors(brief: Brief) -> list[str]:
    """The bytes and operations of the task, and the time that they take at the device's peaks."""
    moved, flops = compulsory_bytes(brief.task), brief.task.flops
    lines = []
    if moved:
        time = _time(moved / brief.peak.bytes_per_s) if brief.peak else ""
        lines.append(f"{_bytes(moved)}: every argument read once, every output written once{time}")
    if flops:
        lines.append(f"{_count(flops)}FLOP{_arithmetic(brief, flops, moved)}")
    return lines or ["not known: the reference could not be traced"]


def _arithmetic(brief: Brief, flops: int, moved: int) -> str:
    if moved and flops < ENOUGH_FLOP_PER_BYTE * moved:
        each = f"{flops / moved:.2g} for each byte, exp and the like counted as one"
        return f" ({each}): it should be memory that limits"
    if brief.peak is None:
        return f" ({flops / moved:.3g} for each byte)" if moved else ""
    return ": " + ", ".join(f"{s * 1e3:.3g} ms {how}" for how, s in _units(brief, flops))


def _units(brief: Brief, flops: int) -> Iterator[tuple[str, float]]:
    """The units that the demand allows, and the seconds that each takes."""
    peak, asked = brief.peak, brief.demand
    assert peak is not None
    if not _is_half(brief.task):
        yield "on the fp32 pipes", flops / peak.fp32
    if peak.half is None or peak.tf32 is None:
        return
    if asked.tier is Tier.FP32 and not _is_half(brief.task):
        yield "as three half products on tensor cores", 3 * flops / peak.half
        return
    if not _is_half(brief.task):
        yield "as TF32", flops / peak.tf32
    yield "as half products on tensor cores", flops / peak.half


def in_flight(brief: Brief) -> str:
    """Bytes that must be under way on each SM for full bandwidth."""
    sms = next((int(m[1]) for fact in brief.facts if (m := re.search(r"(\d+) SMs", fact))), None)
    if brief.peak is None or sms is None:
        return "20 to 40 KB"
    return f"{brief.peak.bytes_per_s * LATENCY_S / sms / 1024:.0f} KB"


def figures(found: Evaluation) -> list[str]:
    """What was measured of an accepted kernel, a line each."""
    return [line for line in _figures(found) if line]


def _figures(found: Evaluation) -> Iterator[str]:
    if found.time_ms:
        time = found.time_ms
        yield f"time {time.median:.4g} ms (95% interval {time.low:.4g} to {time.high:.4g})"
    compared = [
        f"{found.speedup[key]:.0%} of {name}"
        for key, name in _BASELINES.items()
        if key in found.speedup
    ]
    if compared:
        yield "speed " + ", ".join(compared)
    if found.precision and found.precision.tier:
        p = found.precision
        own = "the task's own inputs" if p.worst_on == "own" else p.worst_on
        worst = f", worst on {own}" if own else ""
        yield f"tier {p.tier}: error {p.error:.2g} (PyTorch: {p.reference_error:.2g}){worst}"
    if found.roofline_share is not None and found.time_ms:
        floor = found.roofline_share * found.time_ms.median
        yield (
            f"{found.roofline_share:.0%} of the roofline: it would take {floor:.3g} ms at "
            f"{found.roofline_ceiling} (measured here; memory by a copy)"
        )
    if found.bottleneck and not found.bottleneck.missing:
        yield from (f"profile: {line}" for line in found.bottleneck.lines())
    yield from map(_resources, found.resources[:6])
    if found.log:
        yield f"the compiler says: {shortened(without_paths(found.log), 600)}"


def tunings(parent: Specimen, baseline: str) -> list[str]:
    """What other values of its constants gave beside its own, on one line."""
    own = parent.evaluation.speedup.get(baseline)
    if not own or not parent.tuned:
        return []
    tried = [
        f"{what}: {'failed' if speedup is None else f'{speedup / own:.3f}'}"
        for what, speedup in parent.tuned[:TUNINGS]
    ]
    return [f"constants tried, with their speed over this kernel's: {'; '.join(tried)}"]


def _resources(used: Resources) -> str:
    spills = f", {used.spill_bytes} bytes spilled" if used.spill_bytes else ", no spills"
    shared = f", {used.shared_bytes} bytes static shared memory" if used.shared_bytes else ""
    stack = f", {used.stack_bytes} bytes stack" if used.stack_bytes else ""
    return f"{used.function}: {used.registers} registers per thread{shared}{stack}{spills}"


def failure(failed: Specimen) -> dict[str, object]:
    """Status, reason, log and failed checks of a kernel, without paths, cut to what matters."""
    found = failed.evaluation
    return {
        "status": str(found.status),
        "reason": shortened(without_paths(found.reason), 1000),
        "log": trimmed(found.log) if found.status is not Status.OK else "",
        "checks": "\n".join(_checks(found)),
        "unordered": bool({"racecheck", "synccheck"} & _failing(found).keys()),
        "time": f"{found.time_ms.median:.4g} ms" if found.time_ms else "",
    }


def changes(failed: Specimen) -> str:
    """What makes it differ from the working kernel it was made of; empty if that is most of it."""
    if failed.origin is None:
        return ""
    before, after = (one.source.splitlines() for one in (failed.origin, failed.kernel))
    lines = list(difflib.unified_diff(before, after, "works", "fails", lineterm="", n=2))
    return "\n".join(lines) if len(lines) <= max(LOG_LINES, len(after) // 2) else ""


def _failing(found: Evaluation) -> dict[str, str]:
    """What certification found, such as a sanitizer's report, by the check's name."""
    checks = (found.certificate or {}).get("checks", {})
    return {name: said for name, said in checks.items() if said.startswith("failed")}


def _checks(found: Evaluation) -> Iterator[str]:
    """What certification found, a line each; then what passed."""
    failed = _failing(found)
    for name, said in failed.items():
        yield f"{name}: {shortened(without_paths(said), 1000)}"
    checks = (found.certificate or {}).get("checks", {})
    passed = [name for name, said in checks.items() if said.startswith("passed")]
    if failed and passed:
        yield f"passed: {', '.join(passed)}"


def trimmed(log: str) -> str:
    """The first lines of a compiler's log, each once."""
    lines = dict.fromkeys(line.rstrip() for line in without_paths(log).splitlines())
    text = "\n".join([line for line in lines if line.strip()][:LOG_LINES])
    return text if len(text) <= LOG_CHARS else text[:LOG_CHARS] + " ..."


def attempt(tried: Tried) -> str:
    """An idea that was tried, and what became of it."""
    return f"{idea(tried.idea)} -> {_outcome(tried)}"


def idea(one: Idea) -> str:
    """An idea with its category, on one line."""
    return _line(one, IDEA_CHARS)


def whole(one: Idea) -> str:
    """An idea with its category, in full: for who is to carry it out."""
    return f"[{one.category}] {one.text}"


def ideas(several: Sequence[Idea]) -> list[str]:
    """Ideas that are in a kernel, each once."""
    return [_line(one, ANCESTOR_CHARS) for one in {one.text: one for one in several}.values()]


def _line(one: Idea, longest: int) -> str:
    return f"[{one.category}] {shortened(one.text, longest)}"


def _outcome(tried: Tried) -> str:
    if tried.gain is None:
        if tried.outcome == Status.OK:
            return "worked"
        return f"failed: {shortened(without_paths(tried.outcome), REASON_CHARS)}"
    if tried.gain >= 1.02:
        return f"gained, {tried.gain:.2f}x"
    return f"lost, {tried.gain:.2f}x" if tried.gain <= 0.98 else "no difference"


def neglected(parent: Specimen, tried: Sequence[Tried], most: int = 2) -> list[Category]:
    """The categories that were tried least, if they were tried less than the average."""
    counts = Counter(dict.fromkeys(Category, 0))
    counts.update(one.category for one in parent.ancestry)
    counts.update(one.idea.category for one in tried for _ in range(2 if one.here else 1))
    average = counts.total() / len(Category)
    few = [category for category in Category if counts[category] < average]
    return sorted(few, key=lambda category: counts[category])[:most]


def _bytes(count: int) -> str:
    return f"{_count(count)}B"


def _count(count: int) -> str:
    for factor, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if count >= factor:
            return f"{count / factor:.3g} {prefix}"
    return f"{count} "


def _time(seconds: float) -> str:
    return f", {seconds * 1e3:.3g} ms at the peak"
