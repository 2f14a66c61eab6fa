"""One sitting of a run: begun or continued, run under signals, and ended in an orderly way."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import importlib.metadata
import os
import platform
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from cuda_sandbox.errors import UserError
from evo import __version__, config_errors, runs
from evo.config import RunConfig, differences, load, restore, stored
from evo.engine import Engine, Outcome
from evo.executor import Executor
from evo.machine import DeviceMissing, Machine, survey
from evo.recorder import Recorder
from evo.records import RunInfo, State
from evo.store import FILE, Store
from evo.studio import Staff
from evo.watch import Watch
from fitness.description import TaskDescription
from operators import extension
from operators.author import Brief, NoFamily

MakeExecutor = Callable[[Machine, Path, TaskDescription, RunConfig], Executor]


class Refused(UserError):
    """The run cannot be begun or continued like this."""


class Stopped(Exception):
    """A signal ended the sitting; ``exit_code`` is 128 + its number."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.exit_code = 128 + number


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


def run(planned: Plan, watch: Watch, make_executor: MakeExecutor) -> Outcome:
    """Run until the budget is spent. Raises Stopped after a signal, and UserErrors."""
    config = planned.config
    with runs.locked(planned.folder):
        try:
            machine = survey(config.devices, config.require, config.cpu.threads)
            with contextlib.closing(_recorder(planned, machine)) as recorder:
                return _sit(planned, recorder, machine, watch, make_executor)
        except BaseException:
            _tidy(planned)
            raise


def _tidy(planned: Plan) -> None:
    """Leave no folder behind for a run that never came to have a kernel."""
    file = planned.folder / FILE
    if not planned.exists and not (file.exists() and _has_any(planned.folder)):
        for name in (FILE, f"{FILE}-wal", f"{FILE}-shm", runs.LOCK, Path(planned.config.task).name):
            (planned.folder / name).unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # somebody keeps other things there
            planned.folder.rmdir()


def _has_any(folder: Path) -> bool:
    with Store.open(folder) as store:
        return bool(store.rows("select 1 from individuals limit 1"))


def _recorder(planned: Plan, machine: Machine) -> Recorder:
    """The run's record, begun if it is not there, with its task's file beside it."""
    if planned.exists:
        return _continued(planned, machine)
    from fitness.errors import TaskError
    from fitness.task import describe

    try:
        task = describe(planned.config.task)
    except TaskError as error:
        raise Refused(str(error)) from error
    info = RunInfo(
        planned.folder.name,
        stored(planned.config),
        task,
        planned.config.fitness.demand,
        machine.language,
        task.signature.header(machine.language),
        _environment(machine),
        datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    )
    return Recorder.create(planned.folder, info)


def _continued(planned: Plan, machine: Machine) -> Recorder:
    recorder = Recorder.open(planned.folder)
    info = recorder.info
    try:
        _refuse_unfit(planned, info, machine)
    except UserError:
        recorder.close()
        raise
    config = planned.config.model_copy(update={"task": Path(planned.config.task).name})
    recorder.set_info(replace(info, config=stored(config), state=State.RUNNING, outcome=""))
    return recorder


def _refuse_unfit(planned: Plan, info: RunInfo, machine: Machine) -> None:
    if info.language != machine.language:
        raise DeviceMissing(
            f"{info.name} evolves {info.language} kernels, which {', '.join(machine.devices)} "
            f"cannot run: continue it on another machine (kernelevo pack {info.name})"
        )
    copy = _task_copy(planned)  # what the judges are going to run
    if copy.exists() and copy.read_text(encoding="utf-8") != info.task.source:
        raise Refused(
            f"{copy} is not the task that {info.name} was begun with: its figures would not be "
            f"comparable. Delete that file, and it is written anew as it was"
        )


def _task_copy(planned: Plan) -> Path:
    """The task's file beside the run's record."""
    return planned.folder / Path(planned.config.task).name


def _environment(machine: Machine) -> dict[str, str]:
    """Versions and hardware; nothing that names the machine or its user."""
    return {
        "kernelevo": __version__,
        "python": platform.python_version(),
        "torch": importlib.metadata.version("torch"),
        "system": f"{platform.system()} {platform.machine()}",
        "hardware": machine.hardware,
        "devices": ", ".join(machine.devices),
    }


def _sit(
    planned: Plan, recorder: Recorder, machine: Machine, watch: Watch, make_executor: MakeExecutor
) -> Outcome:
    info, config = recorder.info, planned.config
    recorder.add_event("sitting", machine.hardware, **_environment(machine))
    task_path = _task_copy(planned)
    if not task_path.exists():
        task_path.write_text(info.task.source, encoding="utf-8")
    brief = Brief(
        info.task,
        info.language,
        info.demand,
        info.header,
        machine.facts,
        machine.arch,
        machine.peak,
    )
    executor = make_executor(machine, task_path, info.task, config)
    try:
        engine = Engine(config, brief, staff(config), executor, recorder, watch)
        watch.follow(engine.budget, recorder.statuses())
        return _under_signals(engine, recorder)
    finally:
        executor.close()


def staff(config: RunConfig) -> Staff:
    """The configured authors, made from their files."""
    authors = tuple(
        extension.load("operators.authors", "author", one.name).make(**one.arguments)
        for one in config.authors
    )
    return Staff(authors, tuple(one.weight for one in config.authors), config.seed)


def _under_signals(engine: Engine, recorder: Recorder) -> Outcome:
    """Run the engine; whatever ends it early is recorded."""
    try:
        return asyncio.run(_interruptible(engine))
    except Stopped:
        _ended(recorder, State.STOPPED, "stopped")
        raise
    except NoFamily as refusal:
        _ended(recorder, State.FAILED, str(refusal))
        raise Refused(str(refusal)) from refusal
    except BaseException as error:
        _ended(recorder, State.FAILED, f"{type(error).__name__}: {error}"[:500])
        raise


def _ended(recorder: Recorder, state: State, outcome: str) -> None:
    recorder.set_info(replace(recorder.info, state=state, outcome=outcome))


async def _interruptible(engine: Engine) -> Outcome:
    """Cancel the engine at the first signal; a second one ends us at once."""
    task = asyncio.ensure_future(engine.run())
    received: list[int] = []

    def stop(number: int) -> None:
        if received:
            os._exit(128 + number)  # every child of ours dies with us
        received.append(number)
        task.cancel()

    with _handling(stop):
        try:
            return await task
        except asyncio.CancelledError:
            if received:
                raise Stopped(received[0]) from None
            raise


@contextlib.contextmanager
def _handling(stop: Callable[[int], None]) -> Iterator[None]:
    loop = asyncio.get_running_loop()
    numbers = (signal.SIGINT, signal.SIGTERM)
    for number in numbers:
        loop.add_signal_handler(number, stop, number)
    try:
        yield
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)
