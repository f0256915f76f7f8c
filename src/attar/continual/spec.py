"""The specification of a comparison in class-incremental learning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field, TypeAdapter
from pydantic.dataclasses import dataclass

from attar.continual.finetune import Kind
from attar.core.errors import AttarError
from attar.core.files import read_toml
from attar.data import Split, load
from attar.data.download import Progress
from attar.data.load import Source
from attar.data.tables import Columns
from attar.nets.train import Training
from attar.study.spec import Names, Network, Place, Seeds, StudySpec, Tables, made, require_one_size, several

STAGES = 5  #: default number of stages


@dataclass(frozen=True, config=ConfigDict(extra="forbid", allow_inf_nan=False))
class ContinualSpec:
    """Methods that fill the memory of a network which learns in stages.

    A TOML file, the flags of ``attar continual`` and Python all build this.
    """

    data: Annotated[Sequence[str], BeforeValidator(several)] = Field(
        default=(), description="data set, whose classes are divided into stages; or several, one stage each"
    )
    test_data: Place = Field(default=None, description="separate test set: a name, file or folder, like the data")
    target: str | None = Field(default=None, description="label column, for CSV and Parquet tables")
    columns: Columns = Field(
        default=None, description="kinds of columns of a table that are not inferred, such as age:numeric,job:category"
    )
    resize: str | None = Field(default=None, description="height and width that images are brought to: 32 or 32x48")
    scaling: str = Field(default="standard", description="how examples are scaled: standard, zca or none")
    val: float = Field(default=0.1, gt=0, lt=1, description="share of train to hold out for validation")
    test: float = Field(default=0.2, gt=0, lt=1, description="share of train to hold out, if there is no test set")
    stages: int | None = Field(default=None, ge=1, description="stages that the classes are divided into; 5 if not set")
    order: int = Field(default=0, ge=0, le=2**62, description="seed of the order of the classes, the same for all runs")
    methods: Names = Field(default=("dm",), description="methods that fill the memory, or names of variants")
    per_class: int = Field(default=10, ge=1, description="examples per class in the memory")
    fraction: float | None = Field(
        default=None,
        gt=0,
        le=1,
        description="memory as a share of the (first) training data, instead of per_class",
    )
    seeds: Seeds = Field(default=(0, 1, 2), description="random seeds")
    regime: Literal["memory", "finetune"] = Field(
        default="memory",
        description="memory: a new network is trained on the memory alone after every stage; finetune: the network of "
        "the last stage is trained on the memory and the new data, with distillation",
    )
    distillation: float = Field(
        default=0.5, ge=0, lt=1, description="weight λ of the distillation loss, in fine-tuning"
    )
    distillation_kind: Kind = Field(
        default="logits",
        description="what fine-tuning keeps: logits of old classes, or directions of features (LUCIR, less-forget)",
    )
    distillation_temperature: float = Field(default=2.0, gt=0, description="temperature T of distilled logits")
    network: Network | None = Field(default=None, description="network of all runs; by default a small one")
    training: Training = Field(default=Training(), description="training settings of every stage")
    sampler: str | None = Field(
        default=None, description="sampler of posteriors on the memory alone; by default each method's own"
    )
    sampler_options: dict[str, Any] = Field(default_factory=dict, description="hyper-parameters of the sampler")
    draws: int = Field(default=1, ge=1, description="networks whose predictions are averaged")
    options: Tables = Field(default_factory=dict, description="hyper-parameters by method")
    descent: Tables = Field(default_factory=dict, description="optimiser settings by method, for methods that learn")
    variants: dict[str, str] = Field(
        default_factory=dict, description="names of variants, each with its registered method"
    )
    baselines: bool = Field(default=True, description="add a random subset, herding and a memory of all data")

    def __post_init__(self) -> None:
        require_one_size(self)
        checked = self.study
        object.__setattr__(self, "options", checked.options)
        object.__setattr__(self, "descent", checked.descent)
        object.__setattr__(self, "sampler_options", checked.sampler_options)
        if len(self.data) > 1 and self.stages not in (None, len(self.data)):
            raise AttarError(
                f"{len(self.data)} data sets have one stage each, but stages is {self.stages}: leave it out."
            )

    @property
    def study(self) -> StudySpec:
        """The same methods, sizes and settings as a comparison, which checks them."""
        return StudySpec(
            methods=self.methods,
            per_class=(self.per_class,),
            seeds=self.seeds,
            network=self.network,
            training=self.training,
            sampler=self.sampler,
            sampler_options=self.sampler_options,
            draws=self.draws,
            options=self.options,
            descent=self.descent,
            variants=self.variants,
            baselines=self.baselines,
        )

    @staticmethod
    def of(source: ContinualSpec | str | Path | Mapping[str, Any]) -> ContinualSpec:
        """``source`` itself if it is a spec, or one from the path of a TOML file or from a mapping of fields."""
        if isinstance(source, ContinualSpec):
            return source
        if isinstance(source, str | Path):
            return made(ContinualSpec, read_toml(source), f"recipe {source}")
        return made(ContinualSpec, source, "continual")

    def plain(self) -> dict[str, Any]:
        """All fields as plain JSON values."""
        values: dict[str, Any] = TypeAdapter(ContinualSpec).dump_python(self, mode="json")
        return values

    def load_data(
        self, data: Source | Split | list[Source | Split] | None = None, progress: Progress | None = None
    ) -> list[Split]:
        """Load the data: one set, or one for each stage.

        Args:
            data: What to load instead of ``data``: anything that ``attar.load`` takes, a ``Split``, or a list of these.
            progress: Called during a download, as in ``attar.load``.
        """
        sources = list(self.data) if data is None else data if isinstance(data, list) else [data]
        if not sources:
            raise AttarError('There is no data: set `data`, such as data = "digits".')
        if self.test_data is not None:
            if len(sources) > 1:
                raise AttarError("A separate test set belongs to one data set: leave it out where there are several.")
            sources = [{"train": sources[0], "test": self.test_data}]
        return [source if isinstance(source, Split) else self._load(source, progress) for source in sources]

    def _load(self, source: Source, progress: Progress | None) -> Split:
        return load(
            source,
            val=self.val,
            test=self.test,
            scaling=self.scaling,
            resize=self.resize,
            target=self.target,
            columns=self.columns,
            progress=progress,
        )
