"""The two protocols by which the coresets of a study are evaluated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from attar.core import registry
from attar.core.errors import AttarError, Diverged, unknown
from attar.data import Spec, augment
from attar.data.spec import Image
from attar.nets.train import Training
from attar.plan import Reducer
from attar.select.contract import Selector

HONEST, PUBLISHED = "honest", "published"
EVERY = 100  #: steps between the coresets of which the best is kept, in the public code that does so

#: SGD as in ``evaluate_synset`` of VICO-UoE/DatasetCondensation (utils.py), which most public code copies.
SGD = Training(batch=256, lr=0.01, momentum=0.9, weight_decay=5e-4, schedule="step")
Best = Literal["none", "coreset", "epoch"]


@dataclass(frozen=True)
class Rule:
    """How the coresets of a method were evaluated where it was published."""

    source: str  #: repository, commit and file
    training: Training  #: of every network; its steps follow from the epochs
    epochs: int
    plain: int | None = None  #: epochs without augmentation, if others
    augment: str | None = None  #: by default the method's own strategy, and none if it has none
    evaluations: int = 20  #: posteriors; the figure is the mean of their scores
    draws: int = 1  #: networks in a posterior
    sampler: str = "ensemble"
    options: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    best: Best = "none"  #: what the test set chose: the coreset, the epoch of the network, or nothing
    init: str = "real"  #: what synthetic examples start from
    network: str = "convnet-d3w128"
    one: Rule | None = None  #: the rule for one example per class, if another


_DC = "VICO-UoE/DatasetCondensation 53f63a6"
_KIM = Rule(
    "balhaekim/BPC-Divergences e3992f9, evaluation.py and train.py",
    SGD,
    epochs=1,  # chains have transitions instead
    evaluations=10,
    draws=50,
    sampler="sghmc",
    options={
        "chains": 1,
        "warmup": 250,
        "thin": 5,
        "friction": 0.1,
        "temperature": 0.01,
        "step": 0.02,
    },  # the step is ours
)
_ONE = replace(_KIM, draws=10, options={**_KIM.options, "warmup": 50})
_MTT = Rule("GeorgeCazenavette/mtt-distillation 50dccea, distill.py", SGD, 1000, evaluations=5, best="coreset")
#: Of every selection method, and of the full data.
SELECTION = Rule(
    "PatrickZH/DeepCore 74ec709 and SJShin-AI/LCMat 3d74891, main.py",
    Training(batch=128, lr=0.1, momentum=0.9, weight_decay=5e-4, schedule="cosine"),
    200,
    augment="crop-flip",
    evaluations=1,
    best="epoch",
    network="resnet18",
)
RULES: Mapping[str, Rule] = MappingProxyType(
    {
        "dc": Rule(f"{_DC}, main.py", SGD, 1000, plain=300, init="noise"),
        "dsa": Rule(f"{_DC}, main.py", SGD, 1000, plain=300),
        "dm": Rule(f"{_DC}, main_DM.py", SGD, 1000),
        "cafe": Rule("kaiwang960112/CAFE b718ff5, distill.py", SGD, 1000, plain=600, init="noise"),
        "lcmat-c": Rule("the paper, D.1, which names no epochs", SGD, 1000, evaluations=1, init="noise"),
        "mtt": _MTT,
        "bpc-cd": replace(_MTT, source="backpropagator/BPC-CD 0a6fa9e, distill.py"),
        "bpc-fkl": replace(_KIM, one=_ONE),
        "bpc-rkl": replace(_KIM, one=_ONE),
        "bpc-w": replace(_KIM, one=_ONE),
    }
)
#: Why a method has no rule, where it is not its own sampler.
REASONS = {"kip": "its paper evaluates by kernel regression"}


@dataclass(frozen=True)
class Protocol:
    """A named way to evaluate all coresets of a study."""

    name: str
    network: str | None  #: of all runs, if none is given
    published: bool = False  #: each method has its own rule; else all rows have the settings of the study

    def rule(self, method: Reducer | None) -> Rule | None:
        """The rule for the coresets of a method, or for the full data; None if the study's settings hold."""
        if not self.published:
            return None
        if method is None or isinstance(method, Selector):
            return SELECTION
        name = registry.entry_of(method).name
        if name in RULES:
            return RULES[name]
        why = REASONS.get(name, "how its coresets were evaluated is not on record")
        if (sampler := method.inference.sampler) != "ensemble":
            why = f"its coresets are made for {sampler}, and not to train networks for a number of epochs"
        raise AttarError(
            f"{name} cannot follow the protocol {self.name}, because {why}: leave it out, or use --protocol {HONEST}."
        )

    def check(self, spec: Spec) -> None:
        """Refuse data for which there is no published evaluation."""
        if self.published and not isinstance(spec.element, Image):
            raise AttarError(
                f"The protocol {self.name} is for images, and {spec.name} has none: use --protocol {HONEST}."
            )


PROTOCOLS: Mapping[str, Protocol] = MappingProxyType(
    {
        HONEST: Protocol(HONEST, network=None),
        PUBLISHED: Protocol(PUBLISHED, network="convnet-d3w128", published=True),
    }
)


def find(name: str) -> Protocol:
    """The protocol of this name, or an error that suggests the most similar."""
    if name not in PROTOCOLS:
        raise unknown("protocol", name, PROTOCOLS)
    return PROTOCOLS[name]


class Evaluation(NamedTuple):
    """How the coresets of one method and size are evaluated, with everything decided."""

    training: Training
    sampler: str
    options: Mapping[str, Any]
    draws: int
    evaluations: int
    best: Best
    learnt: bool  #: a learning rate that was learnt with the coreset replaces that of the training
    label: str  #: which settings are not the published ones
    source: str

    def trained(self, learnt: float | None) -> Training:
        """The training settings for a coreset with this learnt learning rate, if it has one."""
        if not self.learnt or learnt is None:
            return self.training
        if learnt <= 0:  # it is learnt as a logarithm, which can become too small for a number
            raise Diverged(
                "The learnt learning rate fell to zero: lower scalar_lr, or give a learning rate to train with."
            )
        return replace(self.training, lr=learnt)

    def plain(self) -> dict[str, Any]:
        """As JSON values."""
        return {**self._asdict(), "options": dict(self.options), "training": asdict(self.training)}

    @staticmethod
    def of(values: Mapping[str, Any]) -> Evaluation:
        """The evaluation that ``plain`` gave."""
        return Evaluation(**{**values, "training": registry.make(Training, values["training"], "training")})


def evaluation(
    rule: Rule, own: Mapping[str, Any], strategy: str | None, spec: Spec, size: int, per_class: int | None
) -> Evaluation:
    """The rule for coresets of ``size`` examples, with the settings that the user gives instead.

    Args:
        rule: The rule.
        own: The user's settings by name: those of training, ``network``, ``init``, ``sampler``, ``sampler_options``,
            ``draws`` and ``evaluations``.
        strategy: The method's augmentation; None is the usual one for the data.
        spec: What the examples are.
        size: Examples in the coreset, or in the full data.
        per_class: Examples per class; None for the full data.
    """
    rule = rule.one if rule.one is not None and per_class == 1 else rule
    ways = augment.resolve(strategy if rule.augment is None else rule.augment, spec)
    epochs = rule.plain if rule.plain is not None and ways == "none" else rule.epochs

    def timed(training: Training) -> Training:
        return replace(training, steps=epochs * steps_of_epoch(size, training.batch))

    usual = timed(replace(rule.training, augment=ways))
    asked = {name: value for name, value in own.items() if name in registry.fields(Training)}
    training = replace(
        timed(replace(usual, **asked)), **asked
    )  # the steps follow from the batch, unless they are given
    other = {"network": rule.network, "init": rule.init, "sampler": rule.sampler, "draws": rule.draws}
    known = asdict(usual) | other | {"sampler_options": dict(rule.options), "evaluations": rule.evaluations}
    changed = [name.replace("_", " ") for name, value in own.items() if value != known[name]]
    sampler = own.get("sampler", rule.sampler)
    return Evaluation(
        training,
        sampler,
        {**(rule.options if sampler == rule.sampler else {}), **own.get("sampler_options", {})},
        own.get("draws", rule.draws),
        own.get("evaluations", rule.evaluations),
        rule.best if sampler == rule.sampler else "none",
        "lr" not in asked and sampler == "ensemble",  # chains have step sizes of their own
        f"not as published: {', '.join(changed)}" if changed else "",
        rule.source,
    )


def steps_of_epoch(size: int, batch: int) -> int:
    """Steps in which batches of this size go once through the examples."""
    return -(-size // batch)
