"""The specification of a study."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field
from pydantic.dataclasses import dataclass

from attar.core import registry
from attar.core.errors import AttarError, unknown
from attar.core.files import read_toml
from attar.core.method import Descent
from attar.data import Split
from attar.data.download import Progress
from attar.data.load import Source
from attar.nets.train import Training
from attar.select.budget import BALANCED, known, per_class_of
from attar.study.protocol import HONEST, find
from attar.study.settings import (
    OWN,
    Fractions,
    Names,
    Network,
    Place,
    Settings,
    Sizes,
    Tables,
    explicit,
    made,
    require_one_size,
    several,
    typed,
    values_of,
)

BASELINES = ("uniform", "herding")  #: a random subset, and a strong selection method
FULL = "full"  #: the name of the full data in a study, with the training budget of all rows
CONVERGED = "full-converged"  #: and trained to convergence
REFERENCES = (FULL, CONVERGED)


@dataclass(frozen=True, config=ConfigDict(extra="forbid", allow_inf_nan=False))
class StudySpec(Settings):
    """A comparison of methods, sizes and seeds with the same training settings.

    A TOML file (``StudySpec.read``), the flags of ``attar compare`` and Python all build this. Every name and range
    that needs no data is checked here.
    """

    data: Place = Field(default=None, description="name or path of the data set")
    imbalance: float = Field(
        default=1.0,
        ge=1,
        description="class imbalance: ratio of the largest to the smallest training class",
    )
    flip: float = Field(
        default=0.0, ge=0, lt=1, description="label noise: fraction of training labels changed to another class"
    )
    base: Place = Field(
        default=None, description="data set that gives the base examples, for label-distillation and label-solve"
    )
    methods: Names = Field(default=("dm", "dc"), description="methods, or names of variants")
    per_class: Sizes = Field(default=(1, 10), description="sizes: examples per class")
    fraction: Fractions = Field(
        default=(), description="sizes as fractions of the training data, instead of numbers per class"
    )
    budget: Annotated[str, AfterValidator(known)] = Field(
        default=BALANCED,
        description="class balance: balanced, proportional, minimum or minimum=N",
    )
    protocol: str = Field(
        default=HONEST,
        description="how coresets are evaluated: honest (one budget, nothing chosen on test data), or published (each "
        "method as its public code does it)",
    )
    draws: int = Field(
        default=5, ge=1, description="networks drawn from each posterior, whose predictions are averaged"
    )
    evaluations: int = Field(default=1, ge=1, description="inference runs per coreset, each with its own seed")
    experts: Place = Field(default=None, description="folder of experts; by default those of `attar experts`")
    transfer: Annotated[Sequence[Network], BeforeValidator(several)] = Field(
        default=(), description="other networks to train on every coreset (cross-architecture evaluation)"
    )
    converged: bool = Field(
        default=True,
        description="with the baselines, also train the full data to convergence, with steps chosen on validation",
    )
    given: Names = Field(
        default=(),
        description="settings that replace those of the protocol published, by name; filled in from what is set",
    )

    def __post_init__(self) -> None:
        find(self.protocol)
        require_one_size(self)
        object.__setattr__(self, "given", self._given())
        if not self.names:
            raise AttarError("There is nothing to compare: give methods, or keep the baselines.")
        for name in self.names:
            if name in REFERENCES or not re.fullmatch(r"(?!\.)[\w.+=-]+", name):
                raise AttarError(
                    f"A name in a study has only letters, digits and . + = - _, does not start with a dot and is not "
                    f"{FULL!r} or {CONVERGED!r}, got {name!r}: rename it."
                )
            registry.find(self.method(name), *registry.REDUCERS)
        object.__setattr__(self, "options", self._by_method(self.options, self._options))
        object.__setattr__(self, "descent", self._by_method(self.descent, self._descent))
        if self.sampler is not None:
            made = registry.build(self.sampler, self.sampler_options, "infer")
            object.__setattr__(self, "sampler_options", typed(self.sampler_options, made))

    def _given(self) -> tuple[str, ...]:
        """The names that were given, and all settings that are not the default ones."""
        usual, fields_ = Training(), registry.fields(type(self))
        named = {name: getattr(self, name) != fields_[name].get_default(call_default_factory=True) for name in OWN}
        named |= {name: getattr(self.training, name) != getattr(usual, name) for name in registry.fields(Training)}
        for name in self.given:
            if name not in named:
                raise unknown("setting", name, named)
        return tuple(name for name, other in named.items() if other or name in self.given)

    @property
    def own(self) -> dict[str, Any]:
        """The settings that were given, by name, in place of those of the protocol."""
        values = {name: getattr(self if name in OWN else self.training, name) for name in self.given}
        return {name: value for name, value in values.items() if value is not None}

    def _by_method(self, table: Tables, make: Callable[[str, Mapping[str, Any]], Any]) -> Tables:
        """The same table with every value checked and converted to its type."""
        known = {*self.names, *self.variants, *registry.methods(*registry.REDUCERS)}
        for name in table:
            if name not in known:
                raise unknown("method of this study", name, known)
        return {name: typed(values, make(name, values)) for name, values in table.items()}

    def _options(self, name: str, values: Mapping[str, Any]) -> Any:
        return registry.build(self.method(name), values, *registry.REDUCERS)

    def _descent(self, name: str, values: Mapping[str, Any]) -> Any:
        return registry.make(Descent, values, f"{name} descent")

    @property
    def names(self) -> list[str]:
        """All rows of the study except the full data: the baselines, then the methods."""
        return list(dict.fromkeys([*(BASELINES if self.baselines else ()), *self.methods]))

    def method(self, name: str) -> str:
        """The registered method behind a ``name`` of this study."""
        return self.variants.get(name, name)

    @staticmethod
    def read(path: str | Path) -> StudySpec:
        """The spec in the TOML file ``path``; unknown keys are refused, with a suggestion."""
        return made(StudySpec, read_toml(path), f"recipe {path}")

    def changed(self, values: Mapping[str, Any]) -> StudySpec:
        """A copy with other ``values`` of some fields, checked again."""
        given = {"given": (*self.given, *explicit(values)), **values}
        return made(StudySpec, values_of(self) | given, "the study")

    def stepped(self, steps: int) -> StudySpec:
        """A copy with this number of ``steps`` for every method that learns."""
        learning = [name for name in self.names if registry.find(self.method(name)).family != "select"]
        return replace(self, descent=self.descent | {n: {**self.descent.get(n, {}), "steps": steps} for n in learning})

    def sized(self, split: Split) -> StudySpec:
        """A copy whose sizes are examples per class, where they were shares of the training data of ``split``."""
        if not self.fraction:
            return self
        sizes = several(per_class_of(split.train, None, share) for share in self.fraction)
        return replace(self, per_class=sizes, fraction=())

    def load_data(self, data: Source | Split | None = None, progress: Progress | None = None) -> Split:
        """Load the data of the study.

        Args:
            data: What to load instead of ``data`` and ``test_data``: anything that ``attar.load`` takes, with the
                label column, scaling, shares, vectors, length and damage of the spec; a ``Split`` is used as it is.
            progress: Called during a download, as in ``attar.load``.
        """
        return self.loaded(self._source() if data is None else data, progress, imbalance=self.imbalance, flip=self.flip)

    def _source(self) -> Source:
        if self.data is None:
            raise AttarError('The study names no data: set `data`, such as data = "digits".')
        return self.data if self.test_data is None else {"train": self.data, "test": self.test_data}
