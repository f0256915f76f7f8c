"""The base class of methods: hyper-parameters, requirements and recommended inference."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, Literal, NamedTuple

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass as validated

from attar.core import registry
from attar.core.errors import unknown
from attar.core.forecast import Order

STARTS = ("real", "noise", "mean")  #: initial examples by name; the name of a selection method is allowed too

#: Training on labels that are regression targets, not probabilities.
REGRESSION = {"loss": "squared", "optimiser": "adam", "lr": 1e-3, "weight_decay": 0.0, "schedule": "constant"}


@dataclass(frozen=True)
class Needs:
    """What a method requires besides data and a network."""

    experts: bool = False  #: networks trained on the full data (``attar.experts``)
    pretrained: bool = False  #: networks trained on any data, where an option asks for them
    base: bool = False  #: may label examples of another data set
    validation: bool = False  #: a validation set, whose fingerprint the recipe then holds
    labels: bool = True  #: the class of every example
    features: bool = False  #: a network whose last layer is linear or a cosine classifier
    linear: bool = False  #: a network whose last layer is linear, also in its parameters
    network: bool = True  #: a trained network, to select by
    phase: bool = False  #: takes the network of a training that goes on, where there is one


@validated(frozen=True, config=ConfigDict(extra="forbid", allow_inf_nan=False))
class Descent:
    """The optimiser settings of a method that learns examples."""

    steps: int = Field(default=1000, ge=1, description="updates of the synthetic examples")
    optimiser: Literal["sgd", "adam"] = Field(
        default="sgd", description="optimiser of the synthetic examples; sgd has momentum"
    )
    lr: float = Field(default=0.1, gt=0, description="learning rate of the synthetic examples")
    momentum: float = Field(default=0.5, ge=0, lt=1, description="momentum of sgd")
    schedule: Literal["constant", "cosine"] = Field(default="constant", description="schedule of the learning rates")
    label_lr: float | None = Field(default=None, gt=0, description="learning rate of labels, if they are learnt")
    scalar_lr: float | None = Field(
        default=None, gt=0, description="learning rate of the log of a learnt step size or scale"
    )
    clip: float | None = Field(
        default=None, gt=0, description="largest gradient norm; larger gradients are scaled down to it"
    )
    init: str = Field(
        default="real", description="initial examples: real, noise, mean (of parts of a class), or a selection method"
    )

    def __post_init__(self) -> None:
        if self.init not in STARTS:
            selectors = registry.methods("select")
            if self.init not in selectors:
                raise unknown("start", self.init, (*STARTS, *selectors))

    def rate(self, group: str) -> float:
        """The initial learning rate of a parameter group: ``examples``, ``labels``, ``scalars`` or another."""
        own = {"labels": self.label_lr, "scalars": self.scalar_lr}
        return own.get(group) or self.lr


class Inference(NamedTuple):
    """The recommended inference from a method's coresets: sampler, its options, and training settings.

    An option with the name of a learnt scalar takes the learnt value. ``training`` overrides the user's training
    settings; ``augment`` = None there means the default augmentation for images and none for other examples.
    """

    sampler: str = "ensemble"
    options: Mapping[str, Any] = MappingProxyType({})
    training: Mapping[str, Any] = MappingProxyType({})


class Method:
    """The base class of selectors, condensers and samplers: a frozen dataclass of hyper-parameters."""

    needs: ClassVar[Needs] = Needs()
    shares: ClassVar[bool] = False  #: whether processes can share its work: the sum of their losses is the objective
    whole: ClassVar[str] = ""  #: why they cannot, if a step has nothing to share out
    descent: ClassVar[Descent | None] = None  #: the paper's optimiser settings, for methods that learn examples

    @property
    def inference(self) -> Inference:
        """The recommended inference from its coresets."""
        return Inference()

    @property
    def grows(self) -> Order:
        """How its time grows with the data, for forecasts."""
        return Order()

    def starts(self, per_class: int) -> int:
        """Real examples per class that it needs as a start for ``per_class`` examples."""
        return per_class
