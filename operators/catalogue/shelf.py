"""Finds families by their folders, and the one that fits a task."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from fitness.description import TaskDescription
from operators.author import NoFamily
from operators.catalogue.family import Book, Family, Problem
from operators.catalogue.graph import Graph

HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Match:
    """The family that fits a task, with its ideas in the language asked for."""

    family: str
    language: str
    book: Book
    problem: Problem

    def applicable(self) -> tuple[str, ...]:
        """The keys of the ideas that make sense for this problem and whose requirements do."""
        fits = [entry for entry in self.book.entries if entry.applies(self.problem)]
        keys = {entry.key for entry in fits}
        return tuple(e.key for e in fits if set(self.book.with_key((), e.key)) <= keys)


@cache
def family_names() -> tuple[str, ...]:
    """The folders that hold a family."""
    folders = sorted(p.parent.name for p in HERE.glob("*/__init__.py"))
    return tuple(name for name in folders if not name.startswith("_"))


def load_family(name: str) -> Family:
    """The family of that folder name."""
    family = importlib.import_module(f"operators.catalogue.{name}").FAMILY
    assert isinstance(family, Family)
    return family


def languages(name: str) -> tuple[str, ...]:
    """The languages a family is written in: those with a template."""
    parts = (path.name.split(".") for path in (HERE / name).glob("kernel.*.j2"))
    return tuple(sorted(part[1] for part in parts))


def load_book(name: str, language: str) -> Book:
    """A family's ideas in one language."""
    book = importlib.import_module(f"operators.catalogue.{name}.{language}").BOOK
    assert isinstance(book, Book)
    return book


def match(task: TaskDescription, language: str) -> Match:
    """The family that covers the whole of a task. Raises NoFamily where there is none."""
    graph = Graph(task)
    for name in family_names():
        problem = load_family(name).recognise(graph)
        if problem is not None and language in languages(name):
            book = load_book(name, language)
            if book.serves(problem):
                return Match(name, language, book, problem)
    raise NoFamily(_no_family(graph, language))


def _no_family(graph: Graph, language: str) -> str:
    seen = ", ".join(dict.fromkeys(graph.kinds())) or "nothing to compute"
    served = "; ".join(f"{name} ({load_family(name).serves})" for name in family_names())
    authors = Path(__file__).parents[1] / "authors"
    names = sorted(p.stem for p in authors.glob("[!_]*.py") if p.stem != "catalogue")
    listed = f"one of the authors {', '.join(names)}" if names else "another author"
    return (
        f"the catalogue has no {language} family for the task {graph.task.name!r}, which computes "
        f"{seen}. Its families are: {served}. Put {listed} under `authors:`, "
        "or write a family: a folder under operators/catalogue/"
    )
