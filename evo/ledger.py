"""What models and people are asked, and what it costs: written before anything is done about it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from evo.records import CallState
from evo.writer import Writer
from operators.llm import Model, Prompt, Reply, Usage

ASK = "ask"  # the provider of what people and agents answer; such a call stays open over sittings


@dataclass(frozen=True, slots=True)
class Asked:
    """A request: its place in the run, who asks, and the individuals that it is about."""

    key: str
    author: str
    parents: tuple[str, ...]
    prompt: Prompt
    model: Model


class Ledger:
    """Writes the calls of a run. What has been paid, or may have been, is on the disk at once."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer

    def open(self, asked: Asked, held: Usage | None = None) -> None:
        """An attempt begins; ``held`` is the most that it may cost. A lost call is opened again."""
        with self._writer.transaction() as db:
            known = db.execute("select 1 from calls where key = ?", (asked.key,)).fetchone()
            if known is None:
                self._add(asked)
            query = "update calls set state = ?, held = ?, closed = null where key = ?"
            text = json.dumps(asdict(held)) if held else ""
            db.execute(query, (CallState.OPEN, text, asked.key))
        self._writer.commit()

    def _add(self, asked: Asked) -> None:
        writer, prompt, model = self._writer, asked.prompt, asked.model
        parts = json.dumps([writer.blob(part) for part in (prompt.system, *prompt.parts)])
        schema = None if prompt.schema is None else writer.blob(json.dumps(dict(prompt.schema)))
        origin = (asked.key, writer.next(), writer.elapsed(), asked.author, model.name)
        about = (model.provider, prompt.purpose, prompt.digest(model), json.dumps(asked.parents))
        empty = (None, "", "", "", "", 0, 0, 0, 0, 0, 0.0, 0, 0.0, None)
        writer.insert("calls", (*origin, *about, parts, schema, CallState.OPEN, *empty))

    def pay(self, key: str, usage: Usage | None, guessed: bool = False) -> None:
        """The attempt under way has ended; ``usage`` None: it cost nothing.

        ``guessed``: nobody can say what it cost, ``usage`` is its upper estimate.
        """
        self._pay(key, usage, guessed)
        if usage is not None:
            self._writer.commit()

    def _pay(self, key: str, usage: Usage | None, guessed: bool) -> None:
        spent = usage or Usage()
        unsure = spent if guessed else Usage()
        query = (
            "update calls set held = '', attempts = attempts + ?, input = input + ?, "
            "cached = cached + ?, output = output + ?, reasoning = reasoning + ?, "
            "dollars = dollars + ?, guessed = guessed + ?, guessed_dollars = guessed_dollars + ? "
            "where key = ?"
        )
        figures = (spent.input, spent.cached, spent.output, spent.reasoning, spent.dollars)
        with self._writer.transaction() as db:
            doubt = (unsure.tokens, unsure.dollars)
            db.execute(query, (usage is not None, *figures, *doubt, key))

    def done(self, key: str, reply: Reply, note: str = "") -> None:
        """The reply has come: it is on the disk when this returns."""
        writer = self._writer
        with writer.transaction() as db:
            query = (
                "update calls set state = ?, reply = ?, finish = ?, served = ?, note = ?,"
                " closed = ? where key = ?"
            )
            text = writer.blob(reply.text)
            texts = (CallState.DONE, text, reply.finish, reply.model, note)
            db.execute(query, (*texts, writer.elapsed(), key))
        writer.commit()

    def refuse(self, key: str, note: str) -> None:
        """No usable reply will come."""
        self._close(key, CallState.REFUSED, note)

    def lose(self, key: str, note: str) -> None:
        """Nobody waits for the reply any more; it may be asked for again."""
        self._close(key, CallState.LOST, note)

    def _close(self, key: str, state: CallState, note: str) -> None:
        with self._writer.transaction() as db:
            query = "update calls set state = ?, note = ?, closed = ? where key = ?"
            db.execute(query, (state, note, self._writer.elapsed(), key))
        self._writer.commit()

    def write_off(self) -> int:
        """Book what a killed sitting left under way at its upper estimate; how many calls."""
        query = "select key, held from calls where state = 'open' and provider != ?"
        left = self._writer.rows(query, (ASK,))
        for key, held in left:
            self._pay(key, Usage(**json.loads(held)) if held else None, guessed=True)
            self.lose(key, "the run was killed while it was under way")
        return len(left)
