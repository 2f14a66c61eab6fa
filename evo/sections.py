"""The tables of a run's configuration, each key with its default and its checks."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    field_validator,
    model_validator,
)

from fitness.evaluation import Demand, Tier
from operators import extension, selection, variation


def _whole(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


Count = Annotated[int, BeforeValidator(_whole)]


def _operator(name: str) -> str:
    if name not in variation.by_rate():
        raise ValueError(extension.unknown("operator", name, variation.by_rate()))
    return name


Operator = Annotated[str, AfterValidator(_operator)]
Rate = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


class Section(BaseModel):
    """A table of keys; an unknown key or a wrong type is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Named(BaseModel):
    """A ``name`` with arguments of its own."""

    model_config = ConfigDict(extra="allow", frozen=True, strict=True)

    name: str

    @property
    def arguments(self) -> dict[str, Any]:
        """Everything given beside our own keys."""
        return dict(self.model_extra or {})


class Cpu(Section):
    """``workers`` judge side by side (timing one at a time); ``threads`` for each kernel."""

    workers: Count = Field(default=1, ge=1)
    threads: Count | None = Field(default=None, ge=1)


class FitnessConfig(Section):
    """What a kernel must reach, and what its speedup is against."""

    tier: Literal["fp32", "tf32", "half"] | None = None
    tolerance: float | None = Field(default=None, gt=0, lt=1)
    baseline: Literal["eager", "compile", "best"] = "eager"
    profile: Literal["auto", "always", "never"] = "auto"  # auto: where an author asks a model

    @field_validator("tolerance")
    @classmethod
    def _one_demand(cls, value: float | None, info: ValidationInfo) -> float | None:
        if value is not None and info.data.get("tier") is not None:
            raise ValueError("give either tier or tolerance, not both")
        return value

    @property
    def demand(self) -> Demand:
        """The same as the record that judges get."""
        if self.tolerance is not None:
            return Demand(None, self.tolerance, self.baseline)
        return Demand(Tier(self.tier or "fp32"), None, self.baseline)


class Certification(Section):
    """``sanitizer_seconds`` is what each sanitizer may take before it counts as not run."""

    sanitizer_seconds: float = Field(default=120.0, gt=0, le=7200)


class Migration(Section):
    """Copies of the ``count`` best go to the next island after ``every`` generations."""

    every: Count = Field(default=2, ge=1)
    count: Count = Field(default=1, ge=1)
    topology: Literal["ring"] = "ring"


class Population(Section):
    """Each island keeps ``size`` survivors and lets ``offspring`` be born in a generation."""

    size: Count = Field(default=16, ge=1)
    offspring: Count | None = Field(default=None, ge=1)  # twice the size
    elite: Count = Field(default=4, ge=0)
    islands: Count = Field(default=2, ge=1)
    selection: Named = Named(name="selTournament", tournsize=3)  # type: ignore[call-arg]
    migration: Migration = Migration()

    @model_validator(mode="before")
    @classmethod
    def _few(cls, data: Any) -> Any:
        # a small population has a small default elite
        if isinstance(data, dict) and "elite" not in data and isinstance(data.get("size"), int):
            return data | {"elite": max(0, min(4, data["size"]))}
        return data

    @field_validator("elite")
    @classmethod
    def _fits(cls, value: int, info: ValidationInfo) -> int:
        size = info.data.get("size")
        if size is not None and value > size:
            raise ValueError(f"must not be larger than population.size, which is {size}")
        return value

    @field_validator("selection")
    @classmethod
    def _scheme(cls, value: Named) -> Named:
        selection.scheme(value.name, value.arguments)
        return value

    @property
    def births(self) -> int:
        """Children for each island and generation."""
        return self.offspring or 2 * self.size


class VariationConfig(Section):
    """``rates`` weigh the operators for each parent; counts say how much each may ask for."""

    rates: dict[Operator, Rate] = {"mutation": 0.7, "crossover": 0.1, "tuning": 0.2}
    ideas: Count = Field(default=3, ge=1)
    branches: Count = Field(default=2, ge=1)
    tunings: Count = Field(default=1, ge=0)
    repairs: Count = Field(default=1, ge=0)

    @field_validator("rates")
    @classmethod
    def _usable(cls, rates: dict[str, float]) -> dict[str, float]:
        if not any(variation.operator(name).PARENTS == 1 for name in rates if rates[name] > 0):
            raise ValueError("an operator with one parent (mutation, tuning) needs a rate above 0")
        return rates


class AuthorConfig(Named):
    """A file in operators/authors/ with its ``weight``; other keys are the author's own."""

    weight: float = Field(default=1.0, gt=0)

    @field_validator("name")
    @classmethod
    def _known(cls, name: str) -> str:
        authors = extension.names("operators.authors")
        if name not in authors:
            raise ValueError(extension.unknown("author", name, authors))
        return name

    @model_validator(mode="after")
    def _makes(self) -> Self:
        # each author checks its own arguments
        try:
            extension.load("operators.authors", "author", self.name).make(**self.arguments)
        except TypeError as error:
            raise ValueError(f"{self.name}: {error}") from error
        return self


class Budget(Section):
    """Whichever is spent first ends the run; null is no limit."""

    generations: Count | None = Field(default=5, ge=0)
    evaluations: Count | None = Field(default=500, ge=1)
    hours: float | None = Field(default=2.0, gt=0)
    calls: Count | None = Field(default=None, ge=0)
    tokens: Count | None = Field(default=7_000_000, ge=0)
    dollars: float | None = Field(default=50.0, ge=0)

    @model_validator(mode="after")
    def _ends(self) -> Self:
        if self.generations is None and self.evaluations is None and self.hours is None:
            raise ValueError("one of generations, evaluations and hours must have a limit")
        return self
