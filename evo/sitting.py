"""One sitting of a run: begun or continued, run under signals, and ended in an orderly way."""

from __future__ import annotations

import contextlib
import datetime
import importlib.metadata
import platform
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from cuda_sandbox.errors import UserError
from evo import __version__, runs
from evo.codec import decode, encode
from evo.config import RunConfig, stored
from evo.engine import Engine, Outcome
from evo.executor import Executor
from evo.executors.absent import AbsentExecutor
from evo.executors.replay import ReplayExecutor
from evo.machine import DeviceMissing, Machine, survey
from evo.plan import Plan, Refused
from evo.recorder import Recorder
from evo.records import RunInfo, State
from evo.replay import Departed, Replaying, Verdicts
from evo.store import FILE, Store
from evo.studio import Staff
from evo.supervision import Stopped, Waits, supervise
from evo.watch import Watch
from fitness.description import TaskDescription
from operators import extension
from operators.author import Brief, NoFamily

MakeExecutor = Callable[[Machine, Path, TaskDescription, RunConfig], Executor]


@dataclass(frozen=True, slots=True)
class Manner:
    """How a sitting goes: whether it ends when only waiting is left, and whether it may judge.

    ``replaying``: the run whose replies are given again.
    """

    until_waiting: bool = False
    judges: bool = True
    replaying: Replaying | None = None

    @property
    def repeats_verdicts(self) -> bool:
        """Whether nothing is judged because another run's verdicts are repeated."""
        return self.replaying is not None and self.replaying.verdicts is Verdicts.RECORDED


def run(
    planned: Plan, watch: Watch, make_executor: MakeExecutor, manner: Manner = Manner()
) -> Outcome:
    """Run until the budget is spent. Raises Stopped after a signal, Waits, and UserErrors."""
    with runs.locked(planned.folder):
        try:
            machine = _machine(planned, manner)
            with contextlib.closing(_recorder(planned, machine, manner)) as recorder:
                return _sit(planned, recorder, machine, watch, make_executor, manner)
        except BaseException:
            _tidy(planned)
            raise


def _machine(planned: Plan, manner: Manner) -> Machine:
    """This machine; the one that the run was judged on, without its devices, where none is here."""
    config = planned.config
    if manner.replaying is not None and manner.repeats_verdicts:
        return last_machine(manner.replaying.folder)
    if not manner.judges:
        return _absent(planned)
    try:
        machine = survey(config.devices, config.require, config.cpu.threads)
        if planned.exists:
            _refuse_unfit(planned, machine)
    except DeviceMissing:
        if planned.exists and manner.until_waiting:
            return _absent(planned)
        raise
    return machine


def _absent(planned: Plan) -> Machine:
    if not planned.exists:
        raise DeviceMissing(
            f"{planned.folder.name} is not there yet: a run begins on a machine with its device, "
            f"of which its prompts speak. Begin it there with --until-waiting, then carry it here "
            f"(kernelevo pack, kernelevo unpack)"
        )
    return replace(last_machine(planned.folder), devices=())


def last_machine(folder: Path) -> Machine:
    """The one that a run was last at."""
    with Store.open(folder) as store:
        events = [event for event in store.events() if event.kind == "sitting"]
    return decode(Machine, events[-1].detail["machine"])


def _tidy(planned: Plan) -> None:
    """Leave no folder behind for a run that never came to have a kernel, or a question."""
    file = planned.folder / FILE
    if not planned.exists and not (file.exists() and _has_any(planned.folder)):
        for name in (FILE, f"{FILE}-wal", f"{FILE}-shm", runs.LOCK, Path(planned.config.task).name):
            (planned.folder / name).unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # somebody keeps other things there
            planned.folder.rmdir()


def _has_any(folder: Path) -> bool:
    with Store.open(folder) as store:
        return bool(store.rows("select 1 from individuals union all select 1 from calls limit 1"))


def _recorder(planned: Plan, machine: Machine, manner: Manner) -> Recorder:
    """The run's record, begun if it is not there, with its task's file beside it."""
    if planned.exists:
        return _continued(planned)
    if manner.replaying is not None and manner.repeats_verdicts:
        return _repeated(planned, manner.replaying)
    from fitness.audit import require_sound
    from fitness.errors import TaskError
    from fitness.task import describe

    demand, device = planned.config.fitness.demand, next(iter(machine.devices), "cpu")
    try:
        task = describe(planned.config.task)
        audit = require_sound(Path(planned.config.task), demand, device)
    except TaskError as error:
        raise Refused(str(error)) from error
    if task.beside:
        raise Refused(
            f"{planned.config.task} imports {', '.join(task.beside)} from beside it; a run keeps "
            "its task as one file that can be carried elsewhere: put that code into it"
        )
    info = RunInfo(
        planned.folder.name,
        stored(planned.config),
        task,
        demand,
        machine.language,
        task.signature.header(machine.language),
        _environment(machine),
        _now(),
    )
    recorder = Recorder.create(planned.folder, info)
    recorder.add_event("audit", str(audit.outcome), found=audit.summary)
    return recorder


def _repeated(planned: Plan, replaying: Replaying) -> Recorder:
    """A record that says of itself what the repeated run said when it began."""
    with Store.open(replaying.folder) as store:
        info = store.info
    about = replace(
        info,
        name=planned.folder.name,
        config=stored(planned.config),
        created=_now(),
        state=State.RUNNING,
        best=None,
        winner=None,
        outcome="",
    )
    return Recorder.create(planned.folder, about)


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def _continued(planned: Plan) -> Recorder:
    recorder = Recorder.open(planned.folder)
    info = recorder.info
    try:
        _refuse_edited(planned, info)
    except UserError:
        recorder.close()
        raise
    config = planned.config.model_copy(update={"task": Path(planned.config.task).name})
    recorder.set_info(replace(info, config=stored(config), state=State.RUNNING, outcome=""))
    return recorder


def _refuse_unfit(planned: Plan, machine: Machine) -> None:
    with Store.open(planned.folder) as store:
        info = store.info
    if info.language != machine.language:
        raise DeviceMissing(
            f"{info.name} evolves {info.language} kernels, which {', '.join(machine.devices)} "
            f"cannot run: continue it on another machine (kernelevo pack {info.name})"
        )


def _refuse_edited(planned: Plan, info: RunInfo) -> None:
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
    planned: Plan,
    recorder: Recorder,
    machine: Machine,
    watch: Watch,
    make_executor: MakeExecutor,
    manner: Manner,
) -> Outcome:
    info, config = recorder.info, planned.config
    detail = _environment(machine) | {"machine": encode(machine)}
    recorder.add_event("sitting", machine.hardware, **detail)
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
    with contextlib.ExitStack() as stack:
        recording = None
        if manner.replaying is not None:
            recording = stack.enter_context(manner.replaying.opened())
            recorder.add_event("replay", recording.name, verdicts=str(recording.verdicts))
        if recording is not None and manner.repeats_verdicts:
            executor: Executor = ReplayExecutor(recording.store)
        else:
            executor = _executor(machine, task_path, info.task, config, make_executor)
        stack.callback(executor.close)
        executor.heed(watch.say)
        engine = Engine(config, brief, staff(config), executor, recorder, watch, recording)
        watch.follow(engine.budget, recorder.statuses())
        return _to_the_end(engine, recorder, watch, manner)


def _executor(
    machine: Machine,
    task_path: Path,
    task: TaskDescription,
    config: RunConfig,
    make_executor: MakeExecutor,
) -> Executor:
    if not machine.devices:
        return AbsentExecutor(machine.hardware)
    return make_executor(machine, task_path, task, config)


def staff(config: RunConfig) -> Staff:
    """The configured authors, made from their files."""
    authors = tuple(
        extension.load("operators.authors", "author", one.name).make(**one.arguments)
        for one in config.authors
    )
    return Staff(authors, tuple(one.weight for one in config.authors), config.seed)


def _to_the_end(engine: Engine, recorder: Recorder, watch: Watch, manner: Manner) -> Outcome:
    """Run the engine; whatever ends it early is recorded."""
    try:
        return supervise(engine, recorder, watch, manner.until_waiting)
    except Stopped:
        _ended(recorder, State.STOPPED, "stopped")
        raise
    except Waits as waits:
        _ended(recorder, State.WAITING, str(waits))
        raise
    except Departed as report:
        _ended(recorder, State.STOPPED, str(report).partition("\n")[0])
        raise
    except NoFamily as refusal:
        _ended(recorder, State.FAILED, str(refusal))
        raise Refused(str(refusal)) from refusal
    except BaseException as error:
        _ended(recorder, State.FAILED, f"{type(error).__name__}: {error}"[:500])
        raise


def _ended(recorder: Recorder, state: State, outcome: str) -> None:
    recorder.set_info(replace(recorder.info, state=state, outcome=outcome))
