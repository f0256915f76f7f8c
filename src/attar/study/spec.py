"""The specification of a study."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, TypeAdapter
from pydantic.dataclasses import dataclass

from attar.core import registry
from attar.core.errors import AttarError, unknown
from attar.core.files import read_toml
from attar.core.method import Descent
from attar.data import Split, load
from attar.data.download import Progress
from attar.data.load import Source
from attar.data.tables import Columns
from attar.nets.names import canonical, parse
from attar.nets.train import Training
from attar.select.budget import BALANCED, known, per_class_of
from attar.study.protocol import HONEST, find

BASELINES = ("uniform", "herding")  #: a random subset, and a strong selection method
FULL = "full"  #: the name of the full data in a study, with the training budget of all rows
CONVERGED = "full-converged"  #: and trained to convergence
REFERENCES = (FULL, CONVERGED)
OWN = ("network", "sampler", "sampler_options", "draws", "evaluations")  #: settings of a protocol, beside training


def several(value: Any) -> Any:
    """A tuple without repetitions; a single value becomes a tuple."""
    many = isinstance(value, Iterable) and not isinstance(value, str | Mapping)
    return tuple(dict.fromkeys(value)) if many else (value,)


def _text(value: Any) -> Any:
    return str(value) if isinstance(value, Path) else value


def _network(name: str) -> str:
    return canonical(*parse(name))


Place = Annotated[str | Path | None, BeforeValidator(_text)]
Names = Annotated[Sequence[str], BeforeValidator(several)]
Sizes = Annotated[Sequence[Annotated[int, Field(ge=1)]], BeforeValidator(several), Field(min_length=1)]
Fractions = Annotated[Sequence[Annotated[float, Field(gt=0, le=1)]], BeforeValidator(several)]
Seeds = Annotated[Sequence[Annotated[int, Field(ge=0, le=2**62)]], BeforeValidator(several), Field(min_length=1)]
Network = Annotated[str, AfterValidator(_network)]
Tables = dict[str, dict[str, Any]]
Made = TypeVar("Made")


@dataclass(frozen=True, config=ConfigDict(extra="forbid", allow_inf_nan=False))
class StudySpec:
    """A comparison of methods, sizes and seeds with the same training settings.

    A TOML file (``StudySpec.read``), the flags of ``attar compare`` and Python all build this. Every name and range
    that needs no data is checked here.
    """

    data: Place = Field(default=None, description="name or path of the data set")
    test_data: Place = Field(default=None, description="separate test set: a name, file or folder, like the data")
    target: str | None = Field(default=None, description="label column, for CSV and Parquet tables")
    scaling: str = Field(default="standard", description="how examples are scaled: standard, zca or none")
    val: float = Field(
        default=0.1,
        gt=0,
        lt=1,
        description="share of train to hold out for validation, if the data has no validation set",
    )
    test: float = Field(
        default=0.2, gt=0, lt=1, description="share of train to hold out for testing, if the data has no test set"
    )
    vectors: Place = Field(
        default=None,
        description="file of word vectors for texts, in the text format of GloVe, or `learnt` from the training texts",
    )
    length: int | None = Field(
        default=None, ge=1, description="words per text; by default 95 % of the texts are not cut"
    )
    columns: Columns = Field(
        default=None, description="kinds of columns of a table that are not inferred, such as age:numeric,job:category"
    )
    resize: str | None = Field(default=None, description="height and width that images are brought to: 32 or 32x48")
    imbalance: float = Field(
        default=1.0,
        ge=1,
        description="make training classes rare: the first has this many times as many as the last",
    )
    flip: float = Field(default=0.0, ge=0, lt=1, description="share of training labels to change to another class")
    base: Place = Field(
        default=None, description="data set that gives the base examples, for label-distillation and label-solve"
    )
    methods: Names = Field(default=("dm", "dc"), description="methods, or names of variants")
    per_class: Sizes = Field(default=(1, 10), description="sizes: examples per class")
    fraction: Fractions = Field(default=(), description="sizes as shares of the training data, instead of per_class")
    budget: Annotated[str, AfterValidator(known)] = Field(
        default=BALANCED,
        description="how classes share the examples: balanced, proportional, minimum or minimum=N",
    )
    seeds: Seeds = Field(default=(0, 1, 2), description="random seeds, with one coreset each")
    protocol: str = Field(
        default=HONEST,
        description="how coresets are evaluated: honest, or published (each method as its public code does it)",
    )
    network: Network | None = Field(
        default=None, description="network of all runs; by default a small one for the data, or the protocol's"
    )
    training: Training = Field(default=Training(), description="training settings of all runs, including the full data")
    sampler: str | None = Field(default=None, description="sampler of all posteriors; by default each method's own")
    sampler_options: dict[str, Any] = Field(default_factory=dict, description="hyper-parameters of the sampler")
    draws: int = Field(
        default=5, ge=1, description="networks drawn from each posterior, whose predictions are averaged"
    )
    evaluations: int = Field(default=1, ge=1, description="posteriors per coreset, each with its own seed")
    options: Tables = Field(default_factory=dict, description="hyper-parameters by method")
    descent: Tables = Field(default_factory=dict, description="optimiser settings by method, for methods that learn")
    variants: dict[str, str] = Field(
        default_factory=dict, description="names of variants, each with its registered method"
    )
    experts: Place = Field(default=None, description="folder of experts; by default those of `attar experts`")
    transfer: Annotated[Sequence[Network], BeforeValidator(several)] = Field(
        default=(), description="other networks to train on every coreset"
    )
    baselines: bool = Field(default=True, description="add a random subset, herding and the full data")
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
            object.__setattr__(self, "sampler_options", _typed(self.sampler_options, made))

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
        return {name: _typed(values, make(name, values)) for name, values in table.items()}

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
    def of(source: StudySpec | str | Path | Mapping[str, Any]) -> StudySpec:
        """``source`` itself if it is a spec, or one from the path of a TOML file or from a mapping of fields."""
        if isinstance(source, StudySpec):
            return source
        return StudySpec.read(source) if isinstance(source, str | Path) else made(StudySpec, source, "the study")

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

    def plain(self) -> dict[str, Any]:
        """All fields as plain JSON values."""
        values: dict[str, Any] = TypeAdapter(StudySpec).dump_python(self, mode="json")
        return values

    def load_data(self, data: Source | Split | None = None, progress: Progress | None = None) -> Split:
        """Load the data of the study.

        Args:
            data: What to load instead of ``data`` and ``test_data``: anything that ``attar.load`` takes, with the
                label column, scaling, shares, vectors, length and damage of the spec; a ``Split`` is used as it is.
            progress: Called during a download, as in ``attar.load``.
        """
        if isinstance(data, Split):
            return data
        source = self._source() if data is None else data
        return load(
            source,
            val=self.val,
            test=self.test,
            scaling=self.scaling,
            target=self.target,
            vectors=self.vectors,
            length=self.length,
            columns=self.columns,
            resize=self.resize,
            imbalance=self.imbalance,
            flip=self.flip,
            progress=progress,
        )

    def _source(self) -> Source:
        if self.data is None:
            raise AttarError('The study names no data: set `data`, such as data = "digits".')
        return self.data if self.test_data is None else {"train": self.data, "test": self.test_data}


def require_one_size(spec: Any) -> None:
    """An error if a spec has sizes both as examples per class and as shares of the data."""
    if spec.fraction and spec.per_class != registry.fields(type(spec))["per_class"].default:
        raise AttarError("Give sizes either as per_class or as fraction, not both.")


def _typed(values: Mapping[str, Any], made: Any) -> dict[str, Any]:
    """Values converted to their types: the text "1" of a flag and 1 or 1.0 in TOML are the same study."""
    return {name: getattr(made, name) for name in values}


def made(kind: type[Made], values: Mapping[str, Any], name: str) -> Made:
    """A spec of this kind from plain values; unknown keys are refused, with a suggestion."""
    given = dict(values)
    if "given" in registry.fields(kind):
        given.setdefault("given", explicit(values))
    if isinstance(given.get("training"), Mapping):
        given["training"] = registry.make(Training, given["training"], "training")
    built: Made = registry.make(kind, given, name)
    return built


def explicit(values: Mapping[str, Any]) -> tuple[str, ...]:
    """The names of the settings that these values set in place of a protocol's."""
    training = values.get("training")
    return (*(name for name in OWN if name in values), *(training if isinstance(training, Mapping) else ()))


def values_of(spec: Any) -> dict[str, Any]:
    """The fields of a spec, by name."""
    return {field.name: getattr(spec, field.name) for field in fields(spec)}


def call_of(name: str, spec: Any, usual: Any, data: object) -> str:
    """The Python call that repeats a run; data in memory is shown as ``...``.

    Args:
        name: The function.
        spec: The spec, or the path of its file.
        usual: The spec with all defaults, whose values are left out.
        data: What was given instead of the spec's data, if anything.
    """
    if isinstance(spec, str | Path):
        shown = repr(str(spec))
    else:
        plain, default = spec.plain(), usual.plain()
        shown = repr({key: value for key, value in plain.items() if value != default[key]})
    where = f", data={str(data)!r}" if isinstance(data, str | Path) else ", data=..."
    return f"attar.{name}({shown}{'' if data is None else where})"
