"""Which run is meant: a YAML file or a run that exists, and what may not change in it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from cuda_sandbox.errors import UserError
from evo import config_errors, runs
from evo.config import RunConfig, differences, load, restore
from evo.records import RunInfo, State
from evo.store import FILE, Store


class Refused(UserError):
    """The run cannot be begun or continued like this."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A run to be begun or continued: its folder, its configuration, whether it is there yet."""

    folder: Path
    config: RunConfig
    exists: bool

    @property
    def finished(self) -> bool:
        """Whether it ended, and nothing was added to its budget since."""
        if not self.exists:
            return False
        with Store.open(self.folder) as store:
            info = store.info
        before = restore(info.config, f"{self.folder.name}'s configuration")
        return info.state is State.FINISHED and before.budget == self.config.budget


def plan(target: str, settings: tuple[str, ...], new: bool) -> Plan:
    """What ``kernelevo run TARGET`` is about: a YAML file, or the name or path of a run.

    Raises a UserError where the file, the run or the settings are not usable.
    """
    path = Path(target)
    if path.is_file() and path.name != FILE:
        return _from_file(load(path, settings), new)
    if path.suffix in (".yaml", ".yml"):
        raise Refused(config_errors.no_file(path))
    if new:
        raise Refused("--new takes a YAML file: a run is begun from its configuration")
    return _from_run(runs.resolve(target), settings)


def plan_replay(run: str, settings: tuple[str, ...]) -> Plan:
    """A new run, NAME-replay, with the configuration of ``run``. Raises a UserError."""
    folder = runs.resolve(run)
    with Store.open(folder) as store:
        info = store.info
    config = restore(info.config, f"{folder.name}'s configuration", settings)
    _refuse_keys(info, differences(restore(info.config, info.name), config))
    name = runs.free_name(f"{folder.resolve().name}-replay")
    task = str(folder / config.task)
    return Plan(
        runs.populations_dir() / name, config.model_copy(update={"name": name, "task": task}), False
    )


def _from_file(config: RunConfig, new: bool) -> Plan:
    if new:
        config = config.model_copy(update={"name": runs.free_name(config.name)})
    folder = runs.populations_dir() / config.name
    exists = (folder / FILE).is_file()
    if exists:
        with Store.open(folder) as store:
            _refuse_changes(store.info, config)
    return Plan(folder, config, exists)


def _from_run(folder: Path, settings: tuple[str, ...]) -> Plan:
    with Store.open(folder) as store:
        info = store.info
    config = restore(info.config, f"{folder.name}'s configuration", settings)
    _refuse_keys(info, differences(restore(info.config, info.name), config))
    return Plan(folder, config.model_copy(update={"task": str(folder / config.task)}), True)


def _refuse_changes(info: RunInfo, config: RunConfig) -> None:
    changed = differences(restore(info.config, info.name), config)
    if Path(config.task).read_text(encoding="utf-8") != info.task.source:
        changed = sorted({*changed, "task"})
    _refuse_keys(info, changed)


def _refuse_keys(info: RunInfo, changed: list[str]) -> None:
    if changed:
        raise Refused(
            f"{info.name} was begun with another {', another '.join(changed)}: its figures would "
            f"not be comparable. Put that back, or begin another run with --new"
        )
