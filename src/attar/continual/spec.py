"""The specification of a comparison in class-incremental learning."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import BeforeValidator, ConfigDict, Field
from pydantic.dataclasses import dataclass

from attar.continual.finetune import Kind
from attar.core.errors import AttarError
from attar.data import Split
from attar.data.download import Progress
from attar.data.load import Source
from attar.study.settings import Names, Settings, require_one_size, several
from attar.study.spec import StudySpec

STAGES = 5  #: default number of stages


@dataclass(frozen=True, config=ConfigDict(extra="forbid", allow_inf_nan=False))
class ContinualSpec(Settings):
    """Methods that fill the memory of a network which learns in stages.

    A TOML file, the flags of ``attar continual`` and Python all build this.
    """

    data: Annotated[Sequence[str], BeforeValidator(several)] = Field(
        default=(), description="data set, whose classes are divided into stages; or several, one stage each"
    )
    stages: int | None = Field(default=None, ge=1, description="stages that the classes are divided into; 5 if not set")
    order: int = Field(default=0, ge=0, le=2**62, description="seed of the order of the classes, the same for all runs")
    methods: Names = Field(default=("dm",), description="methods that fill the memory, or names of variants")
    per_class: int = Field(default=10, ge=1, description="examples per class in the memory")
    fraction: float | None = Field(
        default=None,
        gt=0,
        le=1,
        description="memory as a fraction of the (first) training data, instead of a number per class",
    )
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
    sampler: str | None = Field(
        default=None, description="sampler of posteriors on the memory alone; by default each method's own"
    )
    draws: int = Field(
        default=5, ge=1, description="networks drawn from each posterior, whose predictions are averaged"
    )
    baselines: bool = Field(default=True, description="add a random subset, herding and a memory of all data")

    def __post_init__(self) -> None:
        require_one_size(self)
        checked = self.study
        for name in ("options", "descent", "sampler_options"):
            object.__setattr__(self, name, getattr(checked, name))
        if len(self.data) > 1 and self.stages not in (None, len(self.data)):
            raise AttarError(
                f"{len(self.data)} data sets have one stage each, but stages is {self.stages}: leave it out."
            )

    @property
    def study(self) -> StudySpec:
        """The same methods, sizes and settings as a comparison, which checks them."""
        return StudySpec(**self.common, per_class=(self.per_class,), draws=self.draws)

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
        return [self.loaded(source, progress) for source in sources]
