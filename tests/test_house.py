"""The house itself: versions, layers, start-up, configurations, and what the documents promise."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
RUNS = sorted(set((ROOT / "configs").glob("*.yaml")) - {ROOT / "configs" / "models.yaml"})
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
COMMANDS = {path.stem for path in (ROOT / "evo/cli").glob("[a-z]*.py")} - {"main"}
SELECTION = "population.selection."  # its arguments are those of the scheme
HEAVY = {"torch", "numpy", "deap", "networkx", "matplotlib", "pydantic", "rich", "jinja2"}


def kernelevo(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "evo", *arguments], cwd=ROOT, capture_output=True, text=True
    )


def imported_by(*arguments: str) -> set[str]:
    """Top-level names of the modules that ``kernelevo ARGUMENTS`` imports."""
    code = (
        "import json, runpy, sys, contextlib\n"
        f"sys.argv = ['kernelevo', *{list(arguments)!r}]\n"
        "with contextlib.suppress(SystemExit):\n"
        "    runpy.run_module('evo', run_name='__main__')\n"
        "print('\\n' + json.dumps(sorted({name.split('.')[0] for name in sys.modules})))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return set(json.loads(done.stdout.splitlines()[-1]))


def tracked_files() -> list[Path]:
    done = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.skip("not a git checkout")
    return [ROOT / name for name in done.stdout.split("\0") if name and (ROOT / name).is_file()]


def test_help_lists_every_command_and_imports_none_of_the_heavy_libraries() -> None:
    said = kernelevo("--help")
    assert said.returncode == 0, said.stderr
    listed = set(re.findall(r"^  ([a-z][\w-]*)  ", said.stdout, flags=re.MULTILINE))
    assert {name.replace("_", "-") for name in COMMANDS} <= listed
    assert not imported_by("--help") & HEAVY


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_every_command_explains_itself(command: str) -> None:
    from click.testing import CliRunner

    from evo.cli.main import main

    said = CliRunner().invoke(main, [command.replace("_", "-"), "--help"])
    assert said.exit_code == 0, said.output
    assert len(said.stdout.splitlines()) > 4


def test_no_command_imports_a_heavy_library_to_explain_itself() -> None:
    code = "import importlib, sys\n"
    code += "".join(f"importlib.import_module('evo.cli.{name}')\n" for name in COMMANDS)
    code += f"print(*({HEAVY!r} & {{name.split('.')[0] for name in sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == []


def test_commands_that_need_no_torch_do_not_import_it() -> None:
    for arguments in (["doctor"], ["cache"], ["ls"]):
        assert "torch" not in imported_by(*arguments), arguments


def test_an_unknown_command_is_one_message_and_exit_code_2() -> None:
    said = kernelevo("evolve")
    assert said.returncode == 2
    assert said.stdout == ""
    assert "No such command 'evolve'" in said.stderr
    assert "Traceback" not in said.stderr


def test_the_version_is_the_same_everywhere() -> None:
    from evo import __version__

    assert kernelevo("--version").stdout.strip() == f"kernelevo, version {__version__}"
    assert PROJECT["project"]["dynamic"] == ["version"]
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    newest = re.search(r"^## \[(\d[\w.]*)\]", changelog, flags=re.MULTILINE)
    assert newest is not None
    assert newest.group(1) == __version__


def test_every_dependency_is_pinned_within_its_range() -> None:
    from packaging.requirements import Requirement

    project = PROJECT["project"]
    wanted = project["dependencies"] + [
        line for extra in project["optional-dependencies"].values() for line in extra
    ]
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = dict(line.split("==") for line in lines if "==" in line and not line.startswith("#"))
    for requirement in map(Requirement, wanted):
        pin = pins.get(requirement.name.lower())
        assert pin, f"{requirement.name} has no pin in constraints.txt"
        assert requirement.specifier.contains(pin), f"{requirement} excludes its pin {pin}"


def test_imports_go_downwards_only() -> None:
    linter = Path(sys.executable).with_name("lint-imports")
    if not linter.exists():
        pytest.skip("import-linter is not installed here")
    done = subprocess.run(
        [linter, "--no-logo", "--no-cache"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout


def test_torch_is_imported_in_the_fitness_layer_only() -> None:
    importing = re.compile(r"^\s*(import torch|from torch)\b", flags=re.MULTILINE)
    for package in ("cuda_sandbox", "operators", "evo"):
        for path in (ROOT / package).rglob("*.py"):
            assert not importing.search(path.read_text(encoding="utf-8")), path


@pytest.mark.parametrize("path", RUNS, ids=lambda p: p.stem)
def test_every_configuration_loads_and_its_task_is_there(path: Path) -> None:
    from evo.config import load

    config = load(path)
    assert config.name == path.stem
    assert (ROOT / config.task).is_file()


def every_key() -> dict[str, object]:
    """Dotted keys of the configuration with their defaults."""
    from evo.config import RunConfig

    def flat(data: dict[str, object], prefix: str) -> Iterator[tuple[str, object]]:
        for key, value in data.items():
            if isinstance(value, dict):
                yield from flat(value, f"{prefix}{key}.")
            else:
                yield f"{prefix}{key}", value

    keys = dict(flat(RunConfig(name="x", task="x").model_dump(), ""))
    return {key: value for key, value in keys.items() if not key.startswith(SELECTION)}


def test_every_key_stands_in_the_documentation_with_its_default() -> None:
    text = (ROOT / "docs/configuration.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `([\w.]+)` \| [^|]+ \| ([^|]+) \|", text, re.MULTILINE))
    said_otherwise = {"name", "task", "authors", "fitness.tier"}
    for key, default in every_key().items():
        assert key in rows, f"docs/configuration.md lacks {key}"
        if default is not None and key not in said_otherwise:
            number = f"{default:g}" if isinstance(default, float) else default
            assert rows[key].strip("` ") == str(number), key


@pytest.mark.parametrize("path", RUNS, ids=lambda p: p.stem)
def test_every_key_of_a_configuration_is_there_with_a_comment(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    commented = {m[1] for line in lines if (m := re.match(r"[\s-]*(\w+):.*  # \S", line))}
    either = {"tier", "tolerance"}
    missing = {key.rpartition(".")[2] for key in every_key()} - commented - either
    assert not missing
    assert commented & either


@pytest.mark.parametrize("target", ["demo", "test", "test-gpu", "check", "clean"])
def test_the_makefile_has_the_target_and_nothing_else_is_needed(target: str) -> None:
    if shutil.which("make") is None:
        pytest.skip("make is not installed here")
    done = subprocess.run(["make", "-n", target], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_gpu_machine_that_lacks_packages_is_told_which() -> None:
    bare = [sys.executable, "-S", "tests/gpu/machine.py"]  # -S: nothing but the standard library
    done = subprocess.run(bare, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 1
    missing = next(line for line in done.stdout.splitlines() if line.startswith("missing: "))
    assert {"deap", "torch", "pytest"} <= set(re.findall(r"[\w-]+", missing))


def test_the_documents_name_only_commands_and_files_that_exist() -> None:
    for document in DOCUMENTS:
        text = document.read_text(encoding="utf-8")
        for command in re.findall(r"(?:^ {4}|`)kernelevo ([a-z]+)\b", text, re.MULTILINE):
            assert command in COMMANDS, f"{document.name}: kernelevo {command}"
        for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
            assert (document.parent / link).exists(), f"{document.name}: {link}"
        for name in re.findall(r"configs/[\w/]+\.(?:yaml|py)", text):
            assert "NAME" in name or (ROOT / name).exists(), f"{document.name}: {name}"


def test_no_file_names_a_folder_of_the_machine_it_was_written_on() -> None:
    homes = re.compile(r"(?<![\w.$}/])/(?:work|root|home/(?!me\b|someone\b)\w+)/\w")
    for path in tracked_files():
        if path.suffix in {".png", ".sqlite", ".gz"}:
            continue
        found = homes.search(path.read_text(encoding="utf-8", errors="replace"))
        assert found is None, f"{path.relative_to(ROOT)}: {found and found.group()}"


def test_files_that_the_docs_name_are_there() -> None:
    folders = "(?:evo|operators|fitness|cuda_sandbox|configs|benchmarks|tests)"
    named = re.compile(rf"`({folders}/[\w/.-]*(?:\.py|/))`")
    for page in (ROOT / "docs").glob("*.md"):
        for name in named.findall(page.read_text(encoding="utf-8")):
            assert "NAME" in name or (ROOT / name).exists(), (
                f"{page.name} names {name}, which is not there"
            )
