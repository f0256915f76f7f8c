"""What studies and applications have in common: how data is loaded, and which methods run with which settings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, TypeAdapter
from pydantic.dataclasses import dataclass

from attar.core import registry
from attar.core.errors import AttarError
from attar.core.files import read_toml
from attar.data import Split, load
from attar.data.download import Progress
from attar.data.load import Source
from attar.data.tables import Columns
from attar.nets.names import canonical, parse
from attar.nets.train import Training

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
Own = TypeVar("Own", bound="Settings")
Made = TypeVar("Made")


@dataclass(frozen=True, config=ConfigDict(extra="forbid", allow_inf_nan=False))
class Settings:
    """The fields that every spec has. A TOML file, the flags of its command and Python all build the same spec."""

    data: Any = Field(default=None, description="name or path of the data set")
    test_data: Place = Field(default=None, description="separate test set: a name, file or folder, like the data")
    target: str | None = Field(default=None, description="label column, for CSV and Parquet tables")
    scaling: str = Field(default="standard", description="input normalisation: standard, zca (whitening) or none")
    val: float = Field(
        default=0.1,
        gt=0,
        lt=1,
        description="fraction of train to hold out for validation, if the data has no validation set",
    )
    test: float = Field(
        default=0.2, gt=0, lt=1, description="fraction of train to hold out for testing, if the data has no test set"
    )
    vectors: Place = Field(
        default=None,
        description="file of word vectors for texts, in the text format of GloVe, or `learnt` from the training texts",
    )
    length: int | None = Field(
        default=None, ge=1, description="length of texts in words; by default their 95th percentile"
    )
    columns: Columns = Field(
        default=None, description="kinds of columns of a table that are not inferred, such as age:numeric,job:category"
    )
    resize: str | None = Field(default=None, description="resize images to this height and width: 32 or 32x48")
    methods: Names = Field(default=("dm",), description="methods, or names of variants")
    seeds: Seeds = Field(default=(0, 1, 2), description="random seeds, with one coreset each")
    network: Network | None = Field(
        default=None, description="network of all runs; by default a small one for the data, or the protocol's"
    )
    training: Training = Field(default=Training(), description="training settings of all runs, including the full data")
    sampler: str | None = Field(default=None, description="sampler of all posteriors; by default each method's own")
    sampler_options: dict[str, Any] = Field(default_factory=dict, description="hyper-parameters of the sampler")
    options: Tables = Field(default_factory=dict, description="hyper-parameters by method")
    descent: Tables = Field(default_factory=dict, description="optimiser settings by method, for methods that learn")
    variants: dict[str, str] = Field(
        default_factory=dict, description="names of variants, each with its registered method"
    )
    baselines: bool = Field(default=True, description="add a random subset, herding and the full data")

    @classmethod
    def of(cls: type[Own], source: Settings | str | Path | Mapping[str, Any]) -> Own:
        """``source`` itself if it is a spec, or one from the path of a TOML file or from a mapping of fields."""
        if isinstance(source, cls):
            return source
        if isinstance(source, str | Path):
            return made(cls, read_toml(source), f"recipe {source}")
        if isinstance(source, Mapping):
            return made(cls, source, "the study")
        raise AttarError(
            f"A {cls.__name__}, the path of a TOML file or a mapping of its fields is needed, "
            f"got {type(source).__name__}."
        )

    @property
    def common(self) -> dict[str, Any]:
        """The fields of every spec but the data, by name."""
        return {field.name: getattr(self, field.name) for field in fields(Settings) if field.name != "data"}

    def plain(self) -> dict[str, Any]:
        """All fields as plain JSON values."""
        values: dict[str, Any] = TypeAdapter(type(self)).dump_python(self, mode="json")
        return values

    def loaded(
        self, source: Source | Split, progress: Progress | None = None, imbalance: float = 1.0, flip: float = 0.0
    ) -> Split:
        """Load a data set as the spec says; a ``Split`` is used as it is."""
        if isinstance(source, Split):
            return source
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
            imbalance=imbalance,
            flip=flip,
            progress=progress,
        )


def require_one_size(spec: Any) -> None:
    """An error if a spec has sizes both as examples per class and as shares of the data."""
    if spec.fraction and spec.per_class != registry.fields(type(spec))["per_class"].default:
        raise AttarError("Give sizes either as per_class or as fraction, not both.")


def typed(values: Mapping[str, Any], made: Any) -> dict[str, Any]:
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
