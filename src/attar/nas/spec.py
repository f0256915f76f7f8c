"""The specification of an architecture search on proxy sets."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Annotated

from pydantic import BeforeValidator, ConfigDict, Field
from pydantic.dataclasses import dataclass

from attar.core.errors import AttarError, unknown
from attar.data import Split
from attar.data.download import Progress
from attar.data.load import Source
from attar.nets.layers import ACTIVATIONS, NORMS, POOLS
from attar.nets.names import canonical, parse
from attar.study.settings import Names, Network, Place, Seeds, Settings, Sizes, require_one_size, several
from attar.study.spec import FULL, StudySpec

EARLY = "early-stopping"  #: the baseline of training on the full data for as many steps as on a proxy set
Words = Annotated[Sequence[str], BeforeValidator(several), Field(min_length=1)]


@dataclass(frozen=True, config=ConfigDict(extra="forbid", allow_inf_nan=False))
class NasSpec(Settings):
    """Methods that make proxy sets, and the ConvNets that are ranked by training on them.

    A TOML file, the flags of ``attar nas`` and Python all build this.
    """

    data: Place = Field(default=None, description="name or path of the data set")
    methods: Names = Field(default=("dm",), description="methods that make proxy sets, or names of variants")
    per_class: int = Field(default=10, ge=1, description="examples per class in a proxy set")
    fraction: float | None = Field(
        default=None,
        gt=0,
        le=1,
        description="size of a proxy set as a fraction of the training data, instead of a number per class",
    )
    seeds: Seeds = Field(default=(0,), description="random seeds of proxy sets and of the trainings on them")
    depths: Sizes = Field(default=(1, 2, 3), description="numbers of blocks of the ConvNets")
    widths: Sizes = Field(default=(8, 16, 32), description="numbers of channels")
    norms: Words = Field(default=("none", "instance"), description="norms: none, layer, instance or group")
    activations: Words = Field(default=("relu",), description="activations: relu, leakyrelu or sigmoid")
    pools: Words = Field(default=("avg", "max"), description="pooling: avg, max or none")
    full_steps: int = Field(default=3000, ge=2, description="training steps on the full data, the reference")
    network: Network | None = Field(
        default=None, description="network that proxy sets are made with; by default a small one"
    )
    sampler: str | None = Field(default=None, description="sampler on proxy sets; by default each method's own")
    experts: Place = Field(default=None, description="folder of experts; by default those of `attar experts`")
    baselines: bool = Field(default=True, description="add a random subset, herding and early stopping")

    def __post_init__(self) -> None:
        require_one_size(self)
        checked = self.study
        for name in ("options", "descent", "sampler_options"):
            object.__setattr__(self, name, getattr(checked, name))
        for kind, given, known in (
            ("norm", self.norms, NORMS),
            ("activation", self.activations, ACTIVATIONS),
            ("pooling", self.pools, POOLS),
        ):
            for name in given:
                if name not in known:
                    raise unknown(kind, name, known)
        if len(self.networks) < 2:
            raise AttarError("A search needs at least 2 networks: give more depths, widths, norms or poolings.")
        if self.full_steps <= self.training.steps:
            raise AttarError(
                f"Training on the full data has {self.full_steps} steps and on proxy sets {self.training.steps}: give "
                "more full steps, or fewer training steps."
            )

    @property
    def networks(self) -> list[str]:
        """The names of all networks."""
        axes = product(self.depths, self.widths, self.norms, self.activations, self.pools)
        names = [
            f"convnet-d{depth}w{width}-{norm if norm != 'none' else 'nonorm'}-{activation}-"
            f"{pool if pool != 'none' else 'nopool'}"
            for depth, width, norm, activation, pool in axes
        ]
        return [canonical(*parse(name)) for name in names]

    @property
    def rows(self) -> list[str]:
        """What networks are trained on: proxy sets by method, early stopping, and the full data."""
        return [*self.study.names, *([EARLY] if self.baselines or EARLY in self.methods else []), FULL]

    @property
    def study(self) -> StudySpec:
        """The same methods and settings as a comparison, which checks them and loads the data."""
        own = {"data": self.data, "experts": self.experts, "per_class": (self.per_class,), "draws": 1}
        return StudySpec(**self.common | own | {"methods": [name for name in self.methods if name != EARLY]})

    def load_data(self, data: Source | Split | None = None, progress: Progress | None = None) -> Split:
        """Load the data, or ``data`` instead, with ``progress`` of a download; as ``StudySpec.load_data``."""
        return self.study.load_data(data, progress)
