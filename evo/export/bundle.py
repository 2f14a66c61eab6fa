"""Writes the folder of an exported kernel."""

from __future__ import annotations

import json
import keyword
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cuda_sandbox.errors import UserError
from evo.export.interface import interface
from evo.individual import Individual
from evo.lineage import mothers
from evo.report.plain import finite, scrubbed, verdict
from evo.report.text import verdict_facts
from evo.report.trajectory import lines
from evo.report.view import RunView
from fitness.evaluation import Evaluation

TEMPLATES = Path(__file__).parent / "templates"
PYTHON = ("__init__.py", "__main__.py", "module.py", "binding.py", "build.py", "README.md")
TENSOR_MAP = "kernelevo_tensor_map_tiled"  # the header's helper, which the folder must then bring
SUFFIX = {"cuda": "cu"}  # elsewhere the language's own name
NAMES = {"cuda": ("CUDA", "nvcc"), "cpp": ("C++", "g++ or clang++")}


class ExportError(UserError):
    """The kernel, or the folder, is not one to export to."""


@dataclass(frozen=True)
class Bundle:
    """A kernel of a run on its way out; ``certificate`` is its certifying verdict, if any."""

    view: RunView
    individual: Individual
    certificate: Evaluation | None = None

    def __post_init__(self) -> None:
        verdict = self.individual.evaluation
        if verdict is None or not verdict.correct:
            why = f"{verdict.status}: {verdict.reason}" if verdict else "not judged yet"
            raise ExportError(
                f"{self.individual.id} cannot be exported: it was not accepted ({why})"
            )
        if not _template(f"device.{self.individual.kernel.language}.py").exists():
            raise ExportError(
                f"{self.individual.id} is in {self.individual.kernel.language!r}, for which there "
                f"is no template device.{self.individual.kernel.language}.py.j2 to export with"
            )

    @property
    def best_verdict(self) -> Evaluation:
        """The certifying verdict where it was accepted, else the search's."""
        assert self.individual.evaluation is not None
        sealed = self.certificate is not None and self.certificate.correct
        return self.certificate if sealed and self.certificate else self.individual.evaluation

    def write(self, folder: Path, *, force: bool = False) -> list[Path]:
        """Write the files into ``folder``; returns them. Raises ExportError if it is in use."""
        if folder.exists() and not folder.is_dir():
            raise ExportError(f"{folder} is a file; name a folder to export to")
        if folder.is_dir() and any(folder.iterdir()) and not force:
            raise ExportError(f"{folder} is not empty: name a new folder, or say --force")
        try:
            folder.mkdir(parents=True, exist_ok=True)
            files = self.files(folder.resolve().name)
            for name, text in files.items():
                (folder / name).write_text(text, encoding="utf-8")
        except OSError as error:
            raise ExportError(f"cannot write to {folder}: {error.strerror}") from error
        return [folder / name for name in files]

    def files(self, name: str) -> dict[str, str]:
        """The files' texts by their names, for a folder called ``name``."""
        kernel, task = self.individual.kernel, self.view.info.task
        values = self._values(name)
        texts = {file: _rendered(file, values) for file in PYTHON}
        texts["device.py"] = _rendered(f"device.{kernel.language}.py", values)
        if values["tensor_map"]:
            texts["tensor_map.cu"] = _rendered("tensor_map.cu", values)
        texts["reference.py"] = task.source
        texts[f"kernel.{SUFFIX.get(kernel.language, kernel.language)}"] = kernel.source
        texts["interface.h"] = self.view.info.header
        texts["interface.json"] = json.dumps(values["interface"], indent=1) + "\n"
        texts["certificate.json"] = scrubbed(_json(self._certificate()))
        return texts

    def _values(self, name: str) -> dict[str, Any]:
        """What the templates may use."""
        info, one = self.view.info, self.individual
        facts = interface(info.task, info.demand, self.best_verdict, one.kernel.flags)
        title, compiler = NAMES.get(one.kernel.language, (one.kernel.language, "its compiler"))
        return {
            "title": re.sub(r"[^\w .+-]|_", " ", info.task.name),
            "package": name if usable(name) else "PACKAGE",
            "language": title,
            "compiler": compiler,
            "run": info.name,
            "id": one.id,
            "interface": facts,
            "interface_lines": [_tensor_line(spec) for spec in facts["arguments"]]
            + [f"returns {_tensor_line(spec)}" for spec in facts["outputs"]],
            "mode_matters": facts["mode_matters"],
            "tensor_map": TENSOR_MAP in one.kernel.source,
            "remarks": info.task.remarks,
            "facts": [item for item in verdict_facts(self.best_verdict) if item[1]],
            "seal": self._seal(),
            "path": _path(self.view, one),
        }

    def _seal(self) -> str:
        if self.certificate is None:
            return "This kernel was not certified: the figures are the search's."
        if not self.certificate.correct:
            return f"This kernel FAILED its certification: {self.certificate.reason}."
        return "This kernel was certified on inputs that it had never seen."

    def _certificate(self) -> dict[str, Any]:
        info, one = self.view.info, self.individual
        path = mothers(self.view.individuals, one.id)
        return {
            "run": info.name,
            "kernel": one.id,
            "digest": one.digest,
            "task": info.task.name,
            "demand": finite(info.demand),
            "certified": bool(self.certificate and self.certificate.correct),
            "search": verdict(one.evaluation),
            "certification": verdict(self.certificate) if self.certificate else None,
            "ideas": [finite(each.birth.idea) for each in path if each.birth.idea],
            "environment": info.environment,
        }


def usable(name: str) -> bool:
    """Whether a folder of that name can be imported."""
    return name.isidentifier() and not keyword.iskeyword(name)


def _path(view: RunView, one: Individual) -> list[str]:
    """The trajectory to this kernel as text, of a kernel other than the winner too."""
    if one.id != view.winner:
        info = replace(view.info, winner=None, best=one.id)
        view = RunView(info, view.individuals, view.migrations)
    return [line.replace("```", "'''") for line in lines(view)]


def _tensor_line(spec: dict[str, Any]) -> str:
    shape = ", ".join(map(str, spec["shape"]))
    return f"`{spec['name']}`: {spec['role']}, {spec['dtype']} ({shape})"


def _template(name: str) -> Path:
    return TEMPLATES / f"{name}.j2"


def _rendered(name: str, values: dict[str, Any]) -> str:
    import jinja2

    text = _template(name).read_text(encoding="utf-8")
    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined, keep_trailing_newline=True, autoescape=False
    )
    return environment.from_string(text).render(values)


def _json(data: Any) -> str:
    return json.dumps(finite(data), indent=1) + "\n"
