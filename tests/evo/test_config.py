"""Configurations: defaults, overrides, and a message for every mistake."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_sandbox.errors import UserError
from evo import config
from evo.config import check, differences, load, restore, stored
from evo.plan import plan
from evo.yaml_source import ConfigError, override, parse

MINIMAL = "name: x\ntask: t.py\n"


def read(text: str, *settings: str) -> config.RunConfig:
    return check(override(parse(text, "f.yaml"), settings))


def test_defaults_are_those_of_the_documentation() -> None:
    found = read(MINIMAL)
    assert found.devices == "auto"
    assert found.population.size == 16
    assert found.population.elite == 4
    assert found.population.islands == 2
    assert found.population.births == 32
    assert found.population.selection.name == "selTournament"
    assert (found.variation.ideas, found.variation.branches, found.variation.tunings) == (3, 2, 1)
    assert found.budget.calls is None
    assert found.variation.rates == {"mutation": 0.7, "crossover": 0.1, "tuning": 0.2}
    assert found.budget.generations == 5
    assert found.fitness.demand.tier == "fp32"
    assert [author.name for author in found.authors] == ["catalogue"]


def test_numbers_with_an_exponent_need_no_dot() -> None:
    text = f"{MINIMAL}fitness: {{tolerance: 1e-2}}\nbudget: {{tokens: 7e6}}"
    assert read(text).fitness.demand.tolerance == 0.01
    assert read(text).budget.tokens == 7_000_000


def test_a_small_population_has_a_small_default_elite() -> None:
    assert read(f"{MINIMAL}population: {{size: 2}}").population.elite == 2


MISTAKES = [
    (
        "name: x\ntask: t\npopulation:\n  sise: 3\n",
        "f.yaml:4: population.sise: unknown key 'sise'; did you mean size? there are: size, "
        "offspring, elite, islands, selection, migration",
    ),
    ("name: x\n", "f.yaml: task: is missing; it has no default"),
    ("task: t\nname: a/b\n", "f.yaml:2: name: 'a/b' cannot be a run's name: "),
    ("task: t\nname: archive\n", "f.yaml:2: name: 'archive' cannot be a run's name: "),
    (
        f"{MINIMAL}fitness:\n  tier: fp23\n",
        "f.yaml:4: fitness.tier: unknown value 'fp23'; did you mean fp32? "
        "there are: fp32, tf32, half",
    ),
    (
        f"{MINIMAL}fitness: {{tier: fp32, tolerance: 1e-2}}",
        "f.yaml:3: fitness.tolerance: give either tier or tolerance, not both",
    ),
    (
        f"{MINIMAL}fitness: {{tolerance: 2}}",
        "f.yaml:3: fitness.tolerance: must be less than 1, not 2",
    ),
    (f"{MINIMAL}seed: abc\n", "f.yaml:3: seed: must be a whole number, not 'abc'"),
    (f"{MINIMAL}seed: yes\n", "f.yaml:3: seed: must be a whole number, not True"),
    (f"{MINIMAL}require: 40\n", "f.yaml:3: require: must be text (put it in quotes), not 40"),
    (
        f"{MINIMAL}population:\n  size: 8\n  elite: 20\n",
        "f.yaml:5: population.elite: must not be larger than population.size, which is 8",
    ),
    (
        f"{MINIMAL}population: {{islands: 0}}\n",
        "f.yaml:3: population.islands: must be 1 or more, not 0",
    ),
    (
        f"{MINIMAL}population:\n  selection: {{name: selTournamnt}}",
        "f.yaml:4: population.selection: unknown selection 'selTournamnt'; did you mean "
        "selTournament? there are: selBest, selRandom, selRoulette, ",
    ),
    (
        f"{MINIMAL}population:\n  selection: {{name: selNSGA2}}",
        "f.yaml:4: population.selection: selNSGA2 needs several objectives, and fitness here is "
        "one number; those that fit: selBest, selRandom, selRoulette, ",
    ),
    (
        f"{MINIMAL}population:\n  selection: {{name: selAutomaticEpsilonLexicase}}",
        "f.yaml:4: population.selection: selAutomaticEpsilonLexicase needs several objectives",
    ),
    (
        f"{MINIMAL}population:\n  selection: {{name: selTournament, tournsiz: 3}}",
        "f.yaml:4: population.selection: unknown argument of selTournament 'tournsiz'; did you "
        "mean tournsize? there are: tournsize",
    ),
    (
        f"{MINIMAL}population:\n  selection: {{name: selTournament}}",
        "f.yaml:4: population.selection: selTournament needs the argument tournsize",
    ),
    (
        f"{MINIMAL}population:\n  selection: {{name: selTournament, tournsize: 0}}",
        "f.yaml:4: population.selection: selTournament: tournsize must be a whole number from 1 on"
        ", not 0",
    ),
    (
        f"{MINIMAL}variation: {{rates: {{mutation: 70, tuning: 30}}}}",
        "f.yaml:3: variation.rates.mutation: must be 1 or less, not 70",
    ),
    (
        f"{MINIMAL}authors: [{{name: catalogue}}, {{name: catalogue}}]",
        "f.yaml:3: authors: catalogue is there twice: one author may ask several models",
    ),
    (f"{MINIMAL}budget: {{calls: -1}}", "f.yaml:3: budget.calls: must be 0 or more, not -1"),
    (
        f"{MINIMAL}population:\n  migration: {{topology: rign}}",
        "f.yaml:4: population.migration.topology: unknown value 'rign'; did you mean ring? "
        "there are: ring",
    ),
    (
        f"{MINIMAL}variation:\n  rates:\n    tuning: 1\n    mutaton: 1\n",
        "f.yaml:6: variation.rates.mutaton: unknown operator 'mutaton'; did you mean mutation? "
        "there are: crossover, mutation, tuning",
    ),
    (
        f"{MINIMAL}variation: {{rates: {{mutation: -1}}}}",
        "f.yaml:3: variation.rates.mutation: must be 0 or more, not -1",
    ),
    (
        f"{MINIMAL}variation: {{rates: {{crossover: 1}}}}",
        "f.yaml:3: variation.rates: an operator with one parent (mutation, tuning) needs a rate",
    ),
    (f"{MINIMAL}authors: []", "f.yaml:3: authors: needs at least 1"),
    (
        f"{MINIMAL}authors:\n- {{name: catalog}}",
        "f.yaml:4: authors[0].name: unknown author 'catalog'; did you mean catalogue? there are: ",
    ),
    (
        f"{MINIMAL}authors:\n- {{name: catalogue, depth: 3}}",
        "f.yaml:4: authors[0]: the catalogue author takes no options, not depth",
    ),
    (f"{MINIMAL}budget:\n", "f.yaml:3: budget: must be a table of keys, not empty"),
    (
        f"{MINIMAL}budget: {{hours: null, generations: null, evaluations: null}}",
        "f.yaml:3: budget: one of generations, evaluations and hours must have a limit",
    ),
    (f"{MINIMAL}budget: {{hours: -1}}", "f.yaml:3: budget.hours: must be more than 0, not -1"),
    (
        f"{MINIMAL}devices: [cuda:0, gpu]",
        "f.yaml:3: devices: 'gpu' is no device; valid: auto, cpu, cuda:0, [cuda:0, cuda:1]",
    ),
    (
        f"{MINIMAL}devices: [cuda:0, cpu]",
        "f.yaml:3: devices: name each device once, and either cpu or GPUs",
    ),
    ("name: x\ntask: t\nname: y\n", "f.yaml:3: name: given twice, first at f.yaml:1"),
    ("a: [\n", "f.yaml:2: not YAML: "),
    ("- 1\n", "f.yaml:1: a configuration is a table of keys (name: value), not [1]"),
]


@pytest.mark.parametrize(("text", "message"), MISTAKES, ids=[m[:60] for _, m in MISTAKES])
def test_a_mistake_is_named_with_line_key_and_choices(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(text)
    assert str(caught.value).startswith(message)


def test_all_mistakes_are_named_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        read("name: x\ntask: t\nseed: a\npopulation:\n  size: b\n")
    assert [line.split(" ")[0] for line in str(caught.value).splitlines()] == [
        "f.yaml:5:",
        "f.yaml:3:",
    ]


def test_settings_override_keys() -> None:
    text = f"{MINIMAL}authors: [{{name: catalogue}}]"
    found = read(text, "budget.hours=0.5", "authors[0].weight=2", "seed=7", "devices=[cuda:0]")
    assert found.budget.hours == 0.5
    assert found.authors[0].weight == 2
    assert found.seed == 7
    assert found.devices == ["cuda:0"]


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("budget.hours", "--set budget.hours: write --set KEY=VALUE, as in --set budget.hours=1"),
        (
            "budget.huors=1",
            "--set budget.huors=1: budget.huors: unknown key 'huors'; did you mean hours? ",
        ),
        ("seed=abc", "--set seed=abc: seed: must be a whole number, not 'abc'"),
        ("authors[3].weight=1", "--set authors[3].weight=1: there is nothing at 3 to set it in"),
    ],
)
def test_a_mistake_in_a_setting_is_named_as_such(setting: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(f"{MINIMAL}authors: [{{name: catalogue}}]", setting)
    assert str(caught.value).startswith(message)


def test_the_name_is_the_files_stem_and_the_task_is_found_from_the_file(tmp_path: Path) -> None:
    (tmp_path / "configs" / "tasks").mkdir(parents=True)
    (tmp_path / "configs" / "tasks" / "t.py").write_text("")
    file = tmp_path / "configs" / "mine.yaml"
    file.write_text("task: configs/tasks/t.py\n")
    found = load(file)
    assert found.name == "mine"
    assert Path(found.task).is_file()


def test_a_missing_task_is_named_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("seed: 1\ntask: nowhere.py\n")
    with pytest.raises(ConfigError, match=r"mine.yaml:2: task: there is no file nowhere.py"):
        load(file)


def test_a_misspelt_path_is_answered_with_the_nearest_file(tmp_path: Path) -> None:
    (tmp_path / "tasks").mkdir()
    (tmp_path / "tasks" / "softmax.py").write_text("")
    file = tmp_path / "mine.yaml"
    file.write_text("task: tasks/softmx.py\n")
    with pytest.raises(ConfigError, match=r"tasks/softmx.py; did you mean tasks/softmax.py\?"):
        load(file)
    with pytest.raises(UserError, match=r"did you mean .*/mine.yaml\?"):
        plan(str(tmp_path / "mien.yaml"), (), new=False)


def test_what_is_stored_reads_back_and_holds_no_path() -> None:
    before = read(f"{MINIMAL}population: {{size: 2}}\nbudget: {{hours: null}}")
    before = before.model_copy(update={"task": "/home/me/tasks/t.py"})
    text = stored(before)
    assert "/home" not in text
    assert differences(before, restore(text, "x")) == []
    assert restore(text, "x").budget == before.budget


def test_only_budgets_rates_and_devices_may_differ() -> None:
    before = read(MINIMAL)
    allowed = ["budget.hours=9", "variation.rates.tuning=1", "devices=cpu", "cpu.workers=2"]
    assert differences(before, read(MINIMAL, *allowed)) == []
    refused = ["population.size=8", "seed=1", "fitness.tier=half", "variation.ideas=1"]
    assert differences(before, read(MINIMAL, *refused)) == [
        "fitness.tier",
        "population.size",
        "seed",
        "variation.ideas",
    ]
