"""A whole run on the CPU with nothing made up but the model: judged, mended, certified."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from cuda_sandbox.report import Status
from evo.cli.main import main
from evo.store import Store
from tests.evo.pen import ideas
from tests.loopback import Asked, Loopback, Said

ROOT = Path(__file__).resolve().parents[2]
SOURCE = """#define BLOCK 8  // tune: 4 8 16
extern "C" int launch(const float* a, const float* b, float* out, void*) {{
    for (int i = 0; i < A_D0; ++i) {{
        float* row = out + i * B_D1;
        for (int j = 0; j < B_D1; ++j) row[j] = 0.0f;
        for (int k = 0; k < A_D1; ++k)
            for (int j = 0; j < B_D1; ++j) row[j] += a[i * A_D1 + k] * b[k * B_D1 + j]{mistake};
    }}
    static const int number = {number};
    (void)number;
    return 0;
}}
"""
MISTAKES = ("", "", " * 1.01f", " oops")


def write(asked: Asked) -> Said:
    """Kernels of a matrix product, half of them wrong at first, and right once they come back."""
    chance = random.Random(asked.text)
    if "ideas" in (asked.schema or {}).get("properties", {}):
        return Said(ideas(asked.text, chance), reasoning=50)
    mistake = "" if "Status: " in asked.text else chance.choice(MISTAKES)
    source = SOURCE.format(mistake=mistake, number=chance.randrange(10**6))
    return Said(f"Idea: go through memory in order\n\n```cpp\n{source}```\n", reasoning=20)


@pytest.mark.slow
def test_a_model_of_each_vendor_writes_kernels_that_are_compiled_judged_mended_and_certified(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PLANTED_KEY", "sk-x")
    with Loopback(write, latency_s=0.2) as server:
        common = {"key_env": "PLANTED_KEY", "price": {"input": 2.0, "output": 8.0}}
        models = [
            {"name": "o3", "provider": "openai", "base_url": server.openai_url, **common},
            {"name": "gem", "provider": "gemini", "base_url": server.gemini_url, **common},
        ]
        config = {
            "name": "real",
            "task": str(ROOT / "configs/tasks/matmul_tiny.py"),
            "devices": "cpu",
            "population": {"size": 3, "elite": 1, "islands": 1, "offspring": 5},
            "variation": {
                "rates": {"mutation": 0.5, "crossover": 0.5},
                "ideas": 1,
                "branches": 2,
            },
            "authors": [{"name": "llm", "models": models}],
            "budget": {"generations": 2, "evaluations": 24},
        }
        Path("real.yaml").write_text(yaml.safe_dump(config))
        done = CliRunner().invoke(main, ["run", "real.yaml"])
        asked = len(server.log)
    assert done.exit_code == 0, done.output
    assert ", certified" in done.output
    with Store.open(tmp_path / "populations" / "real") as store:
        born, spent = list(store.individuals()), store.spent()
        purposes = Counter(call.prompt.purpose for call in store.calls())
    assert asked == spent.calls
    assert set(purposes) == {"port", "ideas", "kernel", "crossover", "repair"}
    by_id = {one.id: one for one in born}
    mended = [one for one in born if one.birth.operator == "repair"]
    failed = {by_id[one.birth.parents[0]].evaluation.status for one in mended}  # type: ignore
    assert failed <= {Status.INCORRECT, Status.COMPILE_ERROR}
    assert all(one.fitness.valid for one in mended)
    assert {one.birth.model for one in born if one.birth.model} == {"o3", "gem"}
    shown = CliRunner().invoke(main, ["models", "real"])
    assert "gem" in shown.output
