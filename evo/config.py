"""A run's configuration: read, checked, and stored as it was run."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from pydantic import Field, ValidationError, field_validator

from evo import config_errors, runs
from evo.sections import (
    AuthorConfig,
    Budget,
    Certification,
    Count,
    Cpu,
    FitnessConfig,
    Population,
    Section,
    VariationConfig,
)
from evo.yaml_source import ConfigError, Source, override, parse, read

# what may differ when a run is continued: how long, by which rates, and where
OPEN_TO_CHANGE = (
    *("budget", "variation.rates", "devices", "cpu", "require"),
    *("certification", "fitness.profile"),
)


class RunConfig(Section):
    """A whole run. ``task`` is a path, once loaded one that exists."""

    name: str = ""
    task: str
    devices: Any = "auto"
    require: str | None = None
    cpu: Cpu = Cpu()
    fitness: FitnessConfig = FitnessConfig()
    certification: Certification = Certification()
    population: Population = Population()
    variation: VariationConfig = VariationConfig()
    authors: list[AuthorConfig] = Field(default=[AuthorConfig(name="catalogue")], min_length=1)
    budget: Budget = Budget()
    seed: Count = 42

    @field_validator("name")
    @classmethod
    def _folder(cls, name: str) -> str:
        if fault := runs.name_fault(name):
            raise ValueError(fault)
        return name

    @field_validator("authors")
    @classmethod
    def _differ(cls, authors: list[AuthorConfig]) -> list[AuthorConfig]:
        names = [one.name for one in authors]
        if twice := [name for name in names if names.count(name) > 1]:
            raise ValueError(f"{twice[0]} is there twice: one author may ask several models")
        return authors

    @field_validator("devices")
    @classmethod
    def _devices(cls, value: Any) -> Any:
        names = value if isinstance(value, list) else [value]
        if value == "auto":
            return value
        for name in names:
            if not isinstance(name, str) or not re.fullmatch(r"cpu|cuda(:\d+)?", name):
                raise ValueError(
                    f"{name!r} is no device; valid: auto, cpu, cuda:0, [cuda:0, cuda:1]"
                )
        kinds = {name.partition(":")[0] for name in names}
        if len(kinds) != 1 or len(set(names)) != len(names):
            raise ValueError("name each device once, and either cpu or GPUs")
        return names


def load(path: Path, settings: tuple[str, ...] = ()) -> RunConfig:
    """Read a YAML file with ``KEY=VALUE`` settings on top; the task's path is looked up.

    A task is looked for from here, then from the file's folder upwards. Raises ConfigError.
    """
    source = override(read(path), settings)
    source.data.setdefault("name", path.stem)
    config = check(source)
    folders = [Path(), *path.absolute().parents]
    found = _find(Path(config.task), folders)
    if found is None:
        fault = config_errors.no_file(Path(config.task), folders)
        raise ConfigError(f"{source.place(('task',))}: task: {fault}")
    return config.model_copy(update={"task": str(found)})


def _find(task: Path, folders: list[Path]) -> Path | None:
    return next((folder / task for folder in folders if (folder / task).is_file()), None)


def restore(text: str, name: str, settings: tuple[str, ...] = ()) -> RunConfig:
    """The configuration that ``stored`` made ``text`` from, with settings on top."""
    return check(override(parse(text, name), settings))


def check(source: Source) -> RunConfig:
    """Validate; raises ConfigError with a line for each mistake."""
    try:
        return RunConfig.model_validate(source.data)
    except ValidationError as error:
        raise ConfigError(config_errors.explain(error, source, RunConfig)) from error


def stored(config: RunConfig) -> str:
    """The configuration as YAML for the store: all keys, the task by its file name alone."""
    data = config.model_dump()
    data["task"] = Path(config.task).name
    return yaml.safe_dump(data, sort_keys=False, default_flow_style=None)


def differences(old: RunConfig, new: RunConfig) -> list[str]:
    """The keys that differ and must not, when a run is continued."""
    before, after = _flat(old.model_dump()), _flat(new.model_dump())
    before["task"], after["task"] = Path(old.task).name, Path(new.task).name
    keys = sorted(key for key in before | after if before.get(key) != after.get(key))
    return [key for key in keys if not any(_under(key, top) for top in OPEN_TO_CHANGE)]


def _under(key: str, top: str) -> bool:
    return key == top or key.startswith(f"{top}.")


def _flat(data: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in data.items():
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat
