"""A rehearsal for a reader: plan, estimate, first prompts."""

from __future__ import annotations

from collections.abc import Iterator

from evo.config import RunConfig
from evo.rehearsal import FAILING, PARENT_LINES, REPLY_TOKENS, Calls, Rehearsal
from evo.report.text import table
from operators.llm import Model, Prompt, Usage
from operators.llm.estimate import about, at_most

RULE = "=" * 80


def lines(found: Rehearsal, config: RunConfig) -> Iterator[str]:
    """Everything, the prompts in full at the end."""
    yield from _plan(found, config)
    yield ""
    if found.calls:
        yield from _costs(found, config)
    else:
        yield "its authors ask no models: no tokens, no dollars"
    if found.note:
        yield from ("", f"note: {found.note}")
    for number, (prompt, model) in enumerate(found.prompts, 1):
        yield from _in_full(f"prompt {number} of the first {len(found.prompts)}", prompt, model)


def _plan(found: Rehearsal, config: RunConfig) -> Iterator[str]:
    islands, population = config.population.islands, config.population
    plural = "" if islands == 1 else "s"
    yield f"{config.name}: nothing is asked, judged or spent; this is the plan"
    open_end = "" if config.budget.generations is not None else " (no limit: two are shown)"
    yield (
        f"  {islands} island{plural}, generation 0 with the first kernels and "
        f"{found.generations} more{open_end}, {population.births} births each, "
        f"{population.size} survivors"
    )
    steps = ", ".join(f"{count} {name}" for name, count in found.steps.items() if count)
    yield f"  steps: {steps}"
    yield f"  evaluations: about {found.evaluations:.0f} of the budget's {_limit(config)}"


def _limit(config: RunConfig) -> str:
    limit = config.budget.evaluations
    return "unlimited number" if limit is None else f"{limit}"


def _costs(found: Rehearsal, config: RunConfig) -> Iterator[str]:
    head = ("calls for", "about", "tokens each", "at most", "dollars each", "at most")
    yield from table(head, (_row(one) for one in found.calls))
    likely, most = found.likely, found.most
    calls = sum(one.count for one in found.calls)
    yield ""
    yield f"  likely: {calls:.0f} calls, {likely.tokens:,} tokens, {likely.dollars:.2f} dollars"
    yield f"  if each were as dear as it can be: {most.tokens:,} tokens, {most.dollars:.2f} dollars"
    yield f"  {_verdict(config, calls, likely)}"
    yield (
        f"  assumed: kernels of {PARENT_LINES} lines, replies of {REPLY_TOKENS['kernel']:,} tokens "
        f"({REPLY_TOKENS['ideas']:,} for ideas) with reasoning, {FAILING:.0%} of kernels to mend, "
        f"no input cached"
    )


def _row(one: Calls) -> tuple[str, ...]:
    return (
        one.purpose,
        f"{one.count:.0f}",
        f"{one.likely.tokens:,}",
        f"{one.most.tokens:,}",
        f"{one.likely.dollars:.3f}",
        f"{one.most.dollars:.3f}",
    )


def _verdict(config: RunConfig, calls: float, likely: Usage) -> str:
    """Which budget ends the run before its plan, if one is likely to."""
    budget = config.budget
    uses = {
        "calls": (calls, budget.calls),
        "tokens": (likely.tokens, budget.tokens),
        "dollars": (likely.dollars, budget.dollars),
    }
    shares = {name: use / limit for name, (use, limit) in uses.items() if limit}
    name, share = max(shares.items(), key=lambda item: item[1], default=("", 0.0))
    if share > 1:
        return f"the budget of {uses[name][1]:,} {name} is likely to end it after {1 / share:.0%}"
    limits = [f"{limit:,} {name}" for name, (_, limit) in uses.items() if limit is not None]
    return f"within its budget of {', '.join(limits)}" if limits else "without a limit on calls"


def _in_full(title: str, prompt: Prompt, model: Model) -> Iterator[str]:
    yield from ("", RULE)
    yield (
        f"{title}: {prompt.purpose}, to {model.name} ({model.provider}); about "
        f"{about(prompt):,} tokens, counted as {at_most(prompt, model).input:,} at most"
    )
    yield from (RULE, "", "[system]", "", *prompt.system.splitlines(), "", "[request]", "")
    yield from prompt.text.splitlines()
    if prompt.schema is not None:
        import json

        yield from ("", "[schema of the answer]", "", json.dumps(dict(prompt.schema), indent=1))
