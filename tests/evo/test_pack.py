"""``kernelevo pack`` and ``unpack``: a run carried elsewhere, and never over newer work."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import shutil
import sqlite3
import tarfile
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from evo import runs
from evo.cli.main import main
from evo.engine import Outcome
from evo.executors.absent import AbsentExecutor
from evo.recorder import Recorder
from evo.store import Store
from evo.supervision import Waits
from tests.evo.asking import Asking, asking
from tests.evo.fakes import FakeExecutor
from tests.evo.synthetic_run import record, synthetic

NAME = "softmax-demo"


def call(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Machine ``a`` with a run on it; ``away`` goes to machine ``b``."""
    for machine in ("a", "b"):
        (tmp_path / machine).mkdir()
    monkeypatch.chdir(tmp_path / "a")
    record(synthetic(generations=1, width=3), Path("populations") / NAME)
    return tmp_path


def away(here: Path, monkeypatch: pytest.MonkeyPatch, machine: str = "b") -> None:
    monkeypatch.chdir(here / machine)


def go_on(word: str) -> None:
    """The run does one more thing here."""
    with closing(Recorder.open(Path("populations") / NAME)) as recorder:
        recorder.add_event("note", word)


def events() -> list[str]:
    with Store.open(Path("populations") / NAME) as store:
        return [event.subject for event in store.events()]


def test_a_run_goes_to_another_machine_and_comes_back(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = call("pack", NAME, "-o", str(here / "out.tar.gz"))
    assert result.exit_code == 0, result.output
    away(here, monkeypatch)
    result = call("unpack", str(here / "out.tar.gz"))
    assert result.exit_code == 0, result.output
    assert "continue it: kernelevo run softmax-demo" in result.output
    assert call("trajectory", NAME).exit_code == 0
    go_on("done on b")
    call("pack", NAME, "-o", str(here / "back.tar.gz"))
    away(here, monkeypatch, "a")
    result = call("unpack", str(here / "back.tar.gz"))
    assert result.exit_code == 0, result.output
    assert "brought softmax-demo up to revision" in result.output
    assert events()[-1] == "done on b"
    go_on("done on a again")


def test_the_same_pack_twice_does_nothing(here: Path) -> None:
    call("pack", NAME, "-o", "out.tar.gz")
    result = call("unpack", "out.tar.gz")
    assert result.exit_code == 0
    assert "nothing to do" in result.output


def test_a_stale_pack_is_refused_and_changes_nothing(here: Path) -> None:
    call("pack", NAME, "-o", "old.tar.gz")
    go_on("newer work")
    result = call("unpack", "old.tar.gz")
    assert result.exit_code == 2
    assert "the pack is stale" in result.output
    assert "1 records more" in result.output
    assert events()[-1] == "newer work"


def test_a_pack_that_went_another_way_is_refused(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    call("pack", NAME, "-o", str(here / "out.tar.gz"))
    away(here, monkeypatch)
    call("unpack", str(here / "out.tar.gz"))
    go_on("only on b")
    call("pack", NAME, "-o", str(here / "back.tar.gz"))
    away(here, monkeypatch, "a")
    go_on("only on a")
    result = call("unpack", str(here / "back.tar.gz"))
    assert result.exit_code == 2
    assert "went on both here and where it was packed" in result.output
    assert events()[-1] == "only on a"
    result = call("unpack", str(here / "back.tar.gz"), "--as", "other")
    assert result.exit_code == 0, result.output
    assert Path("populations/other/run.sqlite").exists()


def test_another_run_of_the_same_name_is_left_alone(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    call("pack", NAME, "-o", str(here / "out.tar.gz"))
    away(here, monkeypatch)
    record(
        synthetic(generations=1, width=3, seed=8), Path("populations") / NAME, "2027-07-07T00:00:00"
    )
    result = call("unpack", str(here / "out.tar.gz"))
    assert result.exit_code == 2
    assert "another run called softmax-demo is here" in result.output


def test_a_run_in_progress_is_packed_whole_and_not_replaced(here: Path) -> None:
    folder = Path("populations") / NAME
    with closing(Recorder.open(folder)) as recorder, runs.locked(folder):
        recorder.add_event("note", "not yet in the main file")
        result = call("pack", NAME, "-o", "out.tar.gz")
        assert result.exit_code == 0
        assert "the run goes on here" in result.output
        assert "is being run by another process" in call("unpack", "out.tar.gz").output
    assert call("unpack", "out.tar.gz", "--as", "copy").exit_code == 0
    with Store.open(Path("populations/copy")) as store:
        assert [event.subject for event in store.events()][-1] == "not yet in the main file"


def test_the_default_name_tells_the_revision_and_is_not_overwritten(here: Path) -> None:
    assert call("pack", NAME).exit_code == 0
    (file,) = Path().glob("softmax-demo-r*.tar.gz")
    result = call("pack", NAME)
    assert result.exit_code == 2
    assert "--force" in result.output
    before = file.read_bytes()
    assert call("pack", NAME, "--force").exit_code == 0
    assert file.read_bytes() == before  # the same revision gives the same bytes


def parts(file: Path) -> dict[str, bytes]:
    with tarfile.open(file) as tar:
        return {one.name: tar.extractfile(one).read() for one in tar}  # type: ignore[union-attr]


def write(file: Path, members: list[tuple[tarfile.TarInfo, bytes]]) -> None:
    with tarfile.open(file, "w:gz") as tar:
        for member, content in members:
            member.size = len(content) if member.isreg() else 0
            tar.addfile(member, io.BytesIO(content))


def forged(file: Path, **changes: object) -> list[tuple[tarfile.TarInfo, bytes]]:
    """The members of a pack with some fields of its manifest replaced."""
    old = parts(file)
    database = old["run.sqlite"]
    if isinstance(changes.get("database"), bytes):
        database = changes.pop("database")  # type: ignore[assignment]
        changes |= {"digest": hashlib.sha256(database).hexdigest(), "size": len(database)}
    answers = changes.pop("answers", None)
    if isinstance(answers, bytes):
        changes |= {"answers_digest": hashlib.sha256(answers).hexdigest()}
    manifest = {**json.loads(old["manifest.json"]), **changes}
    texts = [
        ("manifest.json", json.dumps(manifest).encode()),
        ("run.sqlite", database),
        ("answers.json", answers if isinstance(answers, bytes) else old["answers.json"]),
    ]
    return [(tarfile.TarInfo(name), text) for name, text in texts]


@pytest.fixture
def packed(here: Path) -> Path:
    call("pack", NAME, "-o", "good.tar.gz")
    shutil.rmtree("populations")
    return Path("good.tar.gz")


def refused(words: str, file: str = "bad.tar.gz") -> None:
    result = call("unpack", file)
    assert result.exit_code == 2, result.output
    assert words in result.output
    assert "Traceback" not in result.output
    left = [path for path in Path("populations").rglob("*") if path.is_file()]
    assert left == []
    assert not (Path().resolve().parent / "evil").exists()


def test_a_name_that_leaves_the_folder_is_refused(packed: Path) -> None:
    for name in ("../evil", "/evil", "..", ".hidden", "a/b", "", 7, "a\0b", "archive"):
        write(Path("bad.tar.gz"), forged(packed, name=name))
        refused("cannot be a run's name")


def test_a_run_is_not_taken_in_as_the_folder_of_kept_winners(packed: Path) -> None:
    result = call("unpack", str(packed), "--as", "archive")
    assert result.exit_code == 2
    assert "'archive' cannot be a run's name" in result.output
    assert not Path("populations/archive").exists()


def test_members_that_leave_the_folder_are_refused(packed: Path) -> None:
    manifest, database, answers = forged(packed)
    for name in ("../evil", "/tmp/evil", "other"):
        write(Path("bad.tar.gz"), [manifest, (tarfile.TarInfo(name), database[1]), answers])
        refused("in place of run.sqlite")
        write(Path("bad.tar.gz"), [manifest, database, (tarfile.TarInfo(name), answers[1])])
        refused("in place of answers.json")
    link = tarfile.TarInfo("run.sqlite")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
    write(Path("bad.tar.gz"), [manifest, (link, b""), answers])
    refused("in place of run.sqlite")
    write(Path("bad.tar.gz"), [manifest, database])
    refused("nothing is in place of answers.json")
    write(Path("bad.tar.gz"), [manifest, database, answers, (tarfile.TarInfo("../evil"), b"x")])
    refused("nothing else")


def test_an_altered_database_is_refused(packed: Path) -> None:
    manifest, (info, content), answers = forged(packed)
    write(Path("bad.tar.gz"), [manifest, (info, content[:-1] + b"\x01"), answers])
    refused("does not match its digest")
    write(Path("bad.tar.gz"), [manifest, (info, content), (answers[0], b"{}")])
    refused("answers.json does not match its digest")
    write(Path("bad.tar.gz"), forged(packed, revision=10**6))
    refused("not the one that its manifest.json describes")


def test_a_database_with_other_tables_or_triggers_is_refused(packed: Path) -> None:
    for statement in (
        "create table extra (x)",
        "create trigger evil after insert on events begin delete from events; end",
        "drop table calls",
        "pragma user_version = 99",
        "pragma application_id = 1",
    ):
        Path("db").write_bytes(parts(packed)["run.sqlite"])
        with closing(sqlite3.connect("db")) as db:
            db.execute(statement)
            db.commit()
        write(Path("bad.tar.gz"), forged(packed, database=Path("db").read_bytes()))
        refused("is not taken in")


def test_what_is_no_pack_is_refused(packed: Path) -> None:
    for content in (b"", b"plain text", gzip.compress(b"no tar"), packed.read_bytes()[:-2000]):
        Path("bad.tar.gz").write_bytes(content)
        refused("bad.tar.gz is no")
    write(Path("bad.tar.gz"), forged(packed, format=1))
    refused("has format 1")
    write(Path("bad.tar.gz"), forged(packed, answers=b'{"answers": [{"text": 7}], "leases": []}'))
    refused("answers.json cannot be read")
    told = {"request": "0123456789", "text": "", "by": "anna", "at": "2026-01-01T00:00:00+00:00"}
    for text in (b"[]", b"{}", b'{"answers": [7], "leases": []}', b"\xff"):
        write(Path("bad.tar.gz"), forged(packed, answers=text))
        refused("answers.json cannot be read")
    for odd in ({"request": "\x1b[2J"}, {"by": "a\nb"}, {"at": "soon"}, {"text": None}):
        text = json.dumps({"answers": [{**told, **odd}], "leases": []}).encode()
        write(Path("bad.tar.gz"), forged(packed, answers=text))
        refused("answers.json cannot be read")
    write(Path("bad.tar.gz"), forged(packed, digest=None, size="large"))
    refused("bad.tar.gz is not taken in")


# Requests and answers: machine a is a workstation, machine b has the device.


class Two:
    """A run of an author that asks, as it lies on either machine."""

    def __init__(self, here: Path) -> None:
        self._here = here
        self._packs = 0

    def on(self, machine: str) -> Asking:
        device = FakeExecutor(failing=0) if machine == "b" else AbsentExecutor("fake")
        return Asking(self._here / machine / "populations" / "asked", asking(), device)

    def carry(self, monkeypatch: pytest.MonkeyPatch, source: str, target: str) -> str:
        """Pack on one machine, unpack on the other; what that said."""
        return self.unpack(monkeypatch, self.pack(monkeypatch, source), target)

    def pack(self, monkeypatch: pytest.MonkeyPatch, machine: str) -> Path:
        self._packs += 1
        file = self._here / f"{self._packs}.tar.gz"
        away(self._here, monkeypatch, machine)
        result = call("pack", "asked", "-o", str(file))
        assert result.exit_code == 0, result.output
        return file

    def unpack(self, monkeypatch: pytest.MonkeyPatch, file: Path, machine: str) -> str:
        away(self._here, monkeypatch, machine)
        result = call("unpack", str(file))
        assert result.exit_code == 0, result.output
        return result.output

    def purposes(self, machine: str) -> list[str]:
        return [entry.request.prompt.purpose for entry in self.on(machine).open()]

    def sources(self, machine: str) -> dict[str, str]:
        with Store.open(self.on(machine).folder) as store:
            return {one.id: one.kernel.source for one in store.individuals() if one.evaluation}


@pytest.fixture
def two(here: Path) -> Two:
    (here / "b" / "populations" / "asked").mkdir(parents=True)
    machines = Two(here)
    machines.on("b").sit()
    return machines


def test_answers_are_written_on_one_machine_and_judged_on_the_other(
    two: Two, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The whole of a run, without the device where the answers are written."""
    outcome: object = None
    for _ in range(5):
        two.carry(monkeypatch, "b", "a")
        while two.on("a").answer_all():
            two.on("a").sit()  # an answered idea becomes its requests for code
        two.carry(monkeypatch, "a", "b")
        outcome = two.on("b").sit()
        if isinstance(outcome, Outcome):
            break
    assert isinstance(outcome, Outcome)
    assert outcome.winner is not None
    said = two.carry(monkeypatch, "b", "a")
    assert "brought asked up to revision" in said
    assert len(two.sources("a")) == 5


def with_ideas_open(two: Two, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The port is judged, ideas are asked for, and a pack of that lies on machine a."""
    two.on("b").answer_all()
    two.on("b").sit()
    assert two.purposes("b") == ["ideas"]
    return two.pack(monkeypatch, "b")


def test_what_is_told_while_the_run_is_away_is_put_together_when_it_comes_back(
    two: Two, monkeypatch: pytest.MonkeyPatch
) -> None:
    two.unpack(monkeypatch, with_ideas_open(two, monkeypatch), "a")
    two.on("a").answer_all()
    two.on("a").sit()
    two.carry(monkeypatch, "a", "b")
    first, second, third, fourth = two.on("b").open()
    with two.on("b").board() as board:
        board.tell(first.request.id, "int told_on_b = 1;\n")
    two.on("b").sit()
    with two.on("a").board() as board:
        board.tell(third.request.id, "int told_on_a = 1;\n")
    said = two.carry(monkeypatch, "b", "a")
    assert "brought asked up to revision" in said
    assert [entry.request.id for entry in two.on("a").open()] == [
        second.request.id,
        fourth.request.id,
    ]
    assert "int told_on_b = 1;\n" in two.sources("a").values()
    two.carry(monkeypatch, "a", "b")
    two.on("b").sit()
    assert "int told_on_a = 1;\n" in two.sources("b").values()


def test_a_workstation_that_went_on_gives_way_to_verdicts_and_loses_no_answer(
    two: Two, monkeypatch: pytest.MonkeyPatch
) -> None:
    two.unpack(monkeypatch, with_ideas_open(two, monkeypatch), "a")
    two.on("a").answer_all()
    two.on("a").sit()
    kernels = [entry.request.id for entry in two.on("a").open()]
    back = two.pack(monkeypatch, "a")
    assert two.on("a").answer_all() == 4  # requests that machine b has never heard of by then
    two.on("a").sit()
    two.unpack(monkeypatch, back, "b")
    with two.on("b").board() as board:
        board.tell(kernels[0], "int told_on_b = 1;\n")
    two.on("b").sit()
    said = two.carry(monkeypatch, "b", "a")
    assert f"request {kernels[0]} was answered on both sides" in said
    two.on("a").sit()
    assert isinstance(two.on("b").sit(), Waits)
    two.carry(monkeypatch, "a", "b")
    assert isinstance(two.on("b").sit(), Outcome)
    assert len(two.sources("b")) == 5


def test_an_older_pack_still_brings_its_answers(two: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    two.unpack(monkeypatch, with_ideas_open(two, monkeypatch), "a")
    two.on("b").answer_all()
    two.on("b").sit()
    with two.on("b").board() as board:
        board.tell(board.open()[0].request.id, "int first = 1;\n")
    two.on("b").sit()
    with two.on("a").board() as board:
        board.tell(board.open()[0].request.id, "an idea of the workstation\n")
    before = two.sources("b")
    said = two.carry(monkeypatch, "a", "b")
    assert "went on here" in said
    assert "1 answers were not here and were taken in" in said
    assert two.sources("b") == before


def test_leases_go_along_and_end_by_themselves(two: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    with two.on("b").board() as board:
        taken = board.take("anna", 60)
        assert taken is not None
    two.carry(monkeypatch, "b", "a")
    with two.on("a").board() as board:
        assert board.take("ben", 60) is None
        (entry,) = board.entries()
        assert entry.lease is not None
        assert entry.lease.by == "anna"


def test_verdicts_on_both_sides_are_refused_before_anything_changes(
    two: Two, monkeypatch: pytest.MonkeyPatch
) -> None:
    away_with = two.pack(monkeypatch, "b")
    two.unpack(monkeypatch, away_with, "a")
    for machine, source in (("a", "int a = 1;\n"), ("b", "int b = 1;\n")):
        run = two.on(machine)
        run.executor = FakeExecutor(failing=0)
        with run.board() as board:
            board.tell(board.open()[0].request.id, source)
        run.sit()
    file = two.pack(monkeypatch, "b")
    away(two._here, monkeypatch, "a")
    before = (two.sources("a"), two.on("a").open())
    result = call("unpack", str(file))
    assert result.exit_code == 2
    assert "verdicts or paid replies among both; nothing was changed" in result.output
    assert "--as" in result.output
    assert (two.sources("a"), two.on("a").open()) == before
