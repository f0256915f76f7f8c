"""A pool of networks in training on the examples that are learnt, for closed forms of the last layer."""

from __future__ import annotations

from functools import partial
from typing import ClassVar, NamedTuple

import torch
from pydantic import Field
from pydantic.dataclasses import dataclass
from torch import Generator, Tensor
from torch.utils.checkpoint import checkpoint

from attar.condense.contract import Condenser, Needs, Task
from attar.condense.source import Pixels, Source, Synthetic
from attar.core.errors import AttarError
from attar.data import Data, Image, augment
from attar.data.data import soft
from attar.infer.head import regressors
from attar.nets import Network
from attar.nets.learner import Adam, State
from attar.nets.losses import targets
from attar.nets.passes import in_parts

GRAPH = 2**28  # activations of one graph; those of more examples are computed again in the backward pass


class Pool(NamedTuple):
    """Networks in training by Adam, ``(k, p)``, and how many steps of its life each has had."""

    theta: Tensor
    first: Tensor
    second: Tensor
    steps: Tensor
    age: Tensor


class Seen(NamedTuple):
    """A real batch and the examples as one network of the pool sees them, in the units of the last layer's prior.

    Of the real batch, a process has its share only.
    """

    real: Tensor  #: (b, h), without a graph
    labels: Tensor  #: (b,)
    phi: Tensor  #: (n, h)
    targets: Tensor  #: (n, classes)


@dataclass(frozen=True)
class Pooled(Condenser):
    """What methods with a pool of networks have in common (Zhou, Nezhadarya & Ba, NeurIPS 2022).

    At each step one network is drawn at random. After the step it is trained on the examples for one step with the
    Gaussian likelihood, or replaced by a new one if its life is over.
    """

    batch: int = Field(default=256, ge=1, description="real examples per step")
    pool: int = Field(default=10, ge=1, description="networks in training at a time")
    net_steps: int = Field(default=100, ge=1, description="steps before a network of the pool is replaced by a new one")
    net_lr: float = Field(default=1e-3, gt=0, description="learning rate of the pool's networks (Adam)")
    net_batch: int = Field(default=500, ge=1, description="examples per training step of a network, or all if fewer")
    staggered: bool = Field(default=False, description="spread the first replacements of networks evenly over time")
    flips: bool = Field(
        default=False, description="add mirror images in the closed form; not for digits and other letters"
    )
    label_scale: float = Field(default=1.0, gt=0, description="factor of the initial labels, after centring")
    strategy: str = Field(default="none", description="siamese augmentation of real and synthetic examples")

    needs: ClassVar[Needs] = Needs(linear=True)
    shares: ClassVar[bool] = True

    def __post_init__(self) -> None:
        augment.parse(self.strategy)

    def source(self, start: Data, gen: Generator) -> Source:
        return Pixels(self._scaled(start), "targets")

    def init(self, task: Task, gen: Generator) -> Pool:
        """New networks; if staggered, each counts as older than the one before by an equal share of its life."""
        if self.flips and not isinstance(task.data.spec.element, Image):
            raise AttarError("Only images can be mirrored: leave flips out.")
        state = Adam(self.net_lr).init(torch.stack([task.network.init(gen) for _ in range(self.pool)]))
        age = torch.arange(self.pool, device=gen.device) * self.net_steps // self.pool
        return Pool(*state, age if self.staggered else torch.zeros_like(age))

    def look(self, syn: Synthetic, pool: Pool, task: Task, gen: Generator) -> tuple[Seen, Pool]:
        """Features of a real batch and of the examples, and the pool after the network's training step."""
        pick = int(torch.randint(self.pool, (), generator=gen, device=gen.device))
        theta, network = pool.theta[pick], task.network
        real = task.data[torch.randint(len(task.data), (self.batch,), generator=gen, device=gen.device)]
        real = real[task.share.rows(len(real))]
        omega = augment.draw(self.strategy, gen)
        x, y = omega(syn.x), syn.y
        with torch.no_grad():
            seen = torch.cat([network.features(theta, part, fast=True) for part in in_parts(network, omega(real.x))])
        both = torch.cat([x, x.flip(3)]) if self.flips else x
        ours = _features(network, theta, both[task.share.rows(len(both))])
        found = Seen(
            regressors(network, seen),
            real.y,
            regressors(network, task.share.gather(ours, len(both))),
            targets(y.repeat(len(both) // len(x), 1), task.classes),
        )
        return found, self._trained(pool, pick, Data(x.detach(), y.detach(), spec=syn.spec), task, gen)

    def _trained(self, pool: Pool, pick: int, examples: Data, task: Task, gen: Generator) -> Pool:
        """The pool after one training step of one network, or with that network replaced by a new one."""
        learner, one, age = Adam(self.net_lr), State(*(part[pick] for part in pool[:4])), pool.age[pick] + 1
        if int(age) == self.net_steps:
            one, age = learner.init(task.network.init(gen)), torch.zeros_like(age)
        else:
            batch = examples if len(examples) <= self.net_batch else examples.sample(self.net_batch, gen)
            one = learner.step(one, task.objective("squared").gradient(one.theta, batch))
        place = torch.tensor([pick], device=one.theta.device)
        return Pool(*(part.index_copy(0, place, new[None]) for part, new in zip(pool, (*one, age), strict=True)))

    def _scaled(self, start: Data) -> Data:
        """The start with centred labels times the label scale, and 1/C added again."""
        if self.label_scale == 1:
            return start
        middle = 1 / start.classes
        return Data(start.x, middle + self.label_scale * (soft(start.y, start.classes) - middle), spec=start.spec)


def _features(network: Network, theta: Tensor, x: Tensor) -> Tensor:
    """Features with a graph to the examples, in parts that are computed twice where one graph would be too large."""
    if len(x) * network.activations <= GRAPH or not network.separate:
        return network.features(theta, x, fast=True)
    again = partial(checkpoint, network.features, use_reentrant=False, preserve_rng_state=False)
    return torch.cat([again(theta, part, True) for part in in_parts(network, x)])
