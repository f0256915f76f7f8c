"""Condensation by aligning features."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import torch
from pydantic import Field
from pydantic.dataclasses import dataclass
from torch import Generator, Tensor
from torch.nn.functional import cross_entropy

from attar.condense.contract import Condenser, Descent, Inference, Loss, Needs, Task
from attar.condense.matching import Pair, pairs
from attar.core.errors import AttarError
from attar.core.registry import condenser
from attar.data import Data, augment
from attar.nets import Network, in_parts
from attar.nets.learner import SGD
from attar.nets.train import fit

WATCHED = 10  # number of recent query accuracies that are compared


class CAFEState(NamedTuple):
    """The network, which real examples are held out as the query set, and recent accuracies on it."""

    theta: Tensor
    held: Tensor  #: (n,) bool
    scores: Tensor  #: (WATCHED,)
    updates: int  #: since the network was drawn


@condenser(
    "cafe",
    about="matches features of every layer",
    choose="slower than dm",
    takes="1 h",
    paper="Wang, Zhao, Peng, Zhu, Yang, Wang, Huang, Bilen, Wang & You, CAFE: Learning to Condense Dataset by Aligning "
    "Features, CVPR 2022",
    learns="pixels",
    cost="a forward pass of a real batch per class, and passes of the query and of the synthetic examples in training",
)
@dataclass(frozen=True)
class CAFE(Condenser):
    r"""Align the mean features of every layer, and let synthetic class centres classify the real examples.

    .. math:: \min_S \; \sum_c \Big[ \sum_l w_l \|\bar f^{S_c}_l - \bar f^{T_c}_l\|^2
        - \frac{\beta}{|T_c|} \sum_{x \in T_c} \log \mathrm{softmax}_c \big(\langle f_L(x), \bar f^{S_1}_L \rangle,
        \dots, \langle f_L(x), \bar f^{S_C}_L \rangle\big) \Big]

    where the features are the inputs of all layers after the first, up to the input :math:`f_L` of the last. As in
    published code, the first two of them have weight ``shallow`` = 0.1 and the others 1. That code sums the
    discrimination over the batch with weight 0.01, which for its 256 examples per class is 0.01 × 256 = 2.56 times the
    mean; with the mean, the balance depends neither on the batch nor on the number of classes. A query
    set of real examples that are never matched decides how long a network is used: between updates it is trained on S
    until its last ten query accuracies differ by more than ``inner``, and a new network is drawn when those after the
    last ten updates differ by less than ``outer``. S may be initialised from query examples. The published code draws a
    new query from the matched examples for every evaluation, and matches features before pooling, those of the last
    block also after it. CAFE+DSA is ``strategy`` = color-crop-cutout-flip-scale-rotate; networks are then trained on
    its coresets with the same augmentation.

    The learning rate is that for width 128, and is multiplied by (128 / width)^0.9 for ConvNets of other widths, whose
    gradients of images are smaller or larger by about that (docs/condensation.md).
    """

    batch: int = Field(default=256, ge=1, description="real examples per class and step")
    beta: float = Field(default=2.56, ge=0, description="weight of the discrimination loss")
    shallow: float = Field(default=0.1, ge=0, description="weight of the first two layers' features; others have 1")
    query: int = Field(default=32, ge=1, description="held-out examples per class, at most half of the class")
    outer: float = Field(default=0.04, ge=0, le=1, description="replace the network if query accuracy varies less")
    inner: float = Field(default=0.03, ge=0, le=1, description="stop network training if query accuracy changes more")
    net_steps: int = Field(default=50, ge=0, description="most network steps between two updates")
    net_lr: float = Field(default=0.01, gt=0, description="learning rate of the network")
    strategy: str = Field(default="none", description="siamese augmentations, one drawn per class")

    needs: ClassVar[Needs] = Needs(linear=True)
    descent: ClassVar[Descent] = Descent(steps=1000, lr=0.1, momentum=0.5)
    growth: ClassVar[float] = 0.9
    shares: ClassVar[bool] = True

    @property
    def inference(self) -> Inference:
        """Training uses the augmentation that the examples were made with."""
        return Inference(training={"augment": self.strategy} if self.strategy != "none" else {})

    def __post_init__(self) -> None:
        augment.parse(self.strategy)

    def init(self, task: Task, gen: Generator) -> CAFEState:
        held = torch.zeros(len(task.data), dtype=torch.bool, device=task.data.x.device)
        for c in range(task.classes):
            members = (task.data.hard == c).nonzero().flatten()
            some = torch.randperm(len(members), generator=gen, device=gen.device)[: min(self.query, len(members) // 2)]
            held[members[some.to(members.device)]] = True
        if not bool(held.any()):
            raise AttarError("cafe holds out real examples of a class: give it at least two of one class.")
        return CAFEState(task.network.init(gen), held, torch.zeros(WATCHED, dtype=torch.float64), 0)

    def loss(self, syn: Data, state: CAFEState, task: Task, gen: Generator) -> Loss:
        theta, held, scores, updates = state
        query = task.data[held]
        if updates >= WATCHED and spread(scores) < self.outer:
            theta, updates = task.network.init(gen), 0
        elif updates:  # the examples have changed since the last update, so this trains on the new ones
            theta = self._train(theta, syn, query, task, gen)
        matched = pairs(syn, task, self.batch, self.strategy, gen, held)
        gap, confusion = align(task, theta, matched, self.shallow)
        score = accuracy(task.network, theta, query)
        scores = torch.cat([scores[1:], score.cpu()[None]])
        alignment, discrimination = task.share.total(torch.stack([gap.detach(), confusion.detach()]))
        metrics = {"alignment": alignment, "discrimination": discrimination, "query_accuracy": score}
        return Loss(gap + self.beta * confusion, CAFEState(theta, held, scores, updates + 1), metrics)

    def _train(self, theta: Tensor, syn: Data, query: Data, task: Task, gen: Generator) -> Tensor:
        network, objective, still = task.network, task.objective(), syn.detach()
        scores = [accuracy(network, theta, query)]
        for _ in range(self.net_steps):
            seen = still.map(lambda x: augment.jitter(self.strategy, x, gen))
            theta = fit(objective, SGD(self.net_lr), theta, [seen])
            scores.append(accuracy(network, theta, query))
            if len(scores) >= WATCHED and spread(torch.stack(scores[-WATCHED:])) > self.inner:
                break
        return theta


def align(task: Task, theta: Tensor, matched: list[Pair], shallow: float) -> tuple[Tensor, Tensor]:
    """Distances of mean features, and mean cross-entropies of real examples under synthetic class centres.

    Both are sums over the classes of this process. The first two layers before the last have weight ``shallow``.
    """
    network = task.network
    gap, centres, seen = torch.zeros((), device=theta.device), [], []
    for real, fake in matched:
        theirs, last = _real(network, theta, real.x)
        ours = [layer.mean(0) for layer in layers(network, theta, fake.x)]
        for number, (a, b) in enumerate(zip(ours, theirs, strict=True)):
            weight = shallow if number < min(2, len(ours) - 1) else 1.0
            gap = gap + weight * (a - b).square().sum()
        centres.append(ours[-1])
        seen.append(last)
    centre = task.share.gather(torch.stack(centres), task.classes)
    wrong = [cross_entropy(last @ centre.T, real.hard) for last, (real, _) in zip(seen, matched, strict=True)]
    return gap, torch.stack(wrong).sum()


@torch.no_grad()
def _real(network: Network, theta: Tensor, x: Tensor) -> tuple[list[Tensor], Tensor]:
    """Mean features of real examples by layer, and the last layer's input for each example."""
    sums, last = [], []
    for part in in_parts(network, x):
        found = layers(network, theta, part)
        sums.append([layer.sum(0) for layer in found])
        last.append(found[-1])
    return [torch.stack(layer).sum(0) / len(x) for layer in zip(*sums, strict=True)], torch.cat(last)


def layers(network: Network, theta: Tensor, x: Tensor) -> list[Tensor]:
    """Inputs of every layer with weights, flattened, ``(n, ...)``; without the first, whose input is the examples."""
    _, seen = network.layers(theta, x)
    return [layer.input.flatten(1) for layer in seen[1:] or seen]


@torch.no_grad()
def accuracy(network: Network, theta: Tensor, data: Data) -> Tensor:
    """The share of examples that are classified correctly."""
    guesses = torch.cat([network(theta, part).argmax(1) for part in in_parts(network, data.x, 256)])
    return (guesses == data.hard).double().mean()


def spread(scores: Tensor) -> float:
    """The largest minus the smallest."""
    return float(scores.max() - scores.min())
