"""Shared by all MCMC samplers: chains from the prior, warm-up, thinning, and points that convergence is judged by."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple, Protocol

import torch
from pydantic import Field
from pydantic.dataclasses import dataclass
from torch import Generator, Tensor

from attar.core.errors import Diverged
from attar.data import Data
from attar.infer.contract import Draws, Sampler
from attar.infer.diagnose import PROBES, Chains, MixingWarning, diagnose
from attar.infer.divide import divided, is_small
from attar.infer.potential import NetworkPotential, Potential, Prior, Whitened
from attar.nets import Network
from attar.nets.members import mine
from attar.nets.train import Training

POINTS = 100  #: points of a chain, after warm-up, by which its mixing is judged
HOTTEST = 10.0  #: energy per parameter, in units of T, above which a chain is unstable

Watch = Callable[[Tensor], Tensor]  #: from the parameters of all chains to what is recorded of each


class Walked(NamedTuple):
    """What was recorded of chains, at the same transitions of all; None where nothing was."""

    kept: Tensor | None  #: (chains, kept, p)
    seen: Tensor | None  #: (chains, points, ...)
    accepted: Tensor | None  #: (chains, transitions after warm-up) bool
    stopped: int | None  #: the transition at which a chain diverged, if one did

    @staticmethod
    def joined(parts: Sequence[Walked]) -> Walked:
        """The chains of all parts, up to where the first of them diverged."""
        if len(parts) == 1:
            return parts[0]
        kept, seen, accepted, stopped = zip(*parts, strict=True)
        ends = [end for end in stopped if end is not None]
        return Walked(_level(kept), _level(seen), _level(accepted), min(ends, default=None))


def _stacked(points: Sequence[Tensor]) -> Tensor | None:
    return torch.stack(tuple(points), 1) if points else None


def _level(parts: Sequence[Tensor | None]) -> Tensor | None:
    """Rows of all parts, as long as the shortest."""
    some = [part for part in parts if part is not None]
    if len(some) < len(parts):
        return None
    return torch.cat([part[:, : min(part.shape[1] for part in some)] for part in some])


class Walk(Protocol):
    """The state of all chains: everything that the next transition depends on, except potential and generator."""

    @property
    def theta(self) -> Tensor:
        """The parameters, ``(chains, p)``."""
        ...

    @property
    def accepted(self) -> Tensor | None:
        """Whether the last transition was accepted, ``(chains,)`` bool; None if the sampler has no accept step."""
        ...


@dataclass(frozen=True)
class Chain(Sampler):
    r"""Hyper-parameters that all MCMC samplers share.

    Chains over networks sample from U/n at temperature T/n in units of the prior (see ``Whitened``): this is the same
    distribution. In these units a parameter k moves by the square of its prior width, :math:`(s \sigma_k)^2`, times a
    learning rate on :math:`U / n`, the mean loss plus 1/n of minus the log prior. ``langevin`` says which rate a step
    is. The step grows from zero during warm-up, because chains start where the potential is steepest.

    The default is a tempered posterior, :math:`\exp(-U/T)` with T = 0.001, not the posterior itself (T = 1): at T = 1,
    chains over thousands of parameters with few examples stay close to the prior for as long as a few trainings take,
    and predictions get worse with temperature. T = 0.001 with s = 30 is also the posterior of examples that count a
    thousand times each under a prior of width :math:`30 \sqrt{0.001} \approx 1`. The steps are for this temperature:
    the potential is steeper where hot chains go, so T = 1 needs a smaller step.

    Whether chains have mixed is judged by their predictions at up to 100 points after warm-up, which are many more than
    the draws that are returned (see ``diagnose``).
    """

    step: float = Field(default=0.2, gt=0, description="step size ε: a squared time, in units of the prior")
    chains: int = Field(default=4, ge=1, description="chains, which run together")
    warmup: int = Field(
        default=300, ge=0, description="transitions before the first draw is kept, during which the step grows"
    )
    thin: int = Field(default=500, ge=1, description="transitions from one kept draw to the next")
    temperature: float = Field(
        default=1e-3, gt=0, description="T of exp(-U/T): 1 is the posterior, other values a tempered posterior"
    )
    prior_scale: float = Field(default=30.0, gt=0, description="s, the prior scale in units of each layer's")
    examples: float | None = Field(default=None, gt=0, description="effective number of examples, if not the data's")

    trains: ClassVar[bool] = False

    def init(self, potential: Potential, start: Tensor, gen: Generator) -> Any:
        """The state of chains that start at ``start``, ``(chains, p)``: a NamedTuple that is a ``Walk``."""
        raise TypeError(f"{type(self).__name__} must define init")

    def update(self, state: Any, potential: Potential, gen: Generator) -> Any:
        """The state after one transition of every chain."""
        raise TypeError(f"{type(self).__name__} must define update")

    def warmed(self, moves: int) -> float:
        """The step size after so many transitions: its root grows linearly during warm-up.

        Chains start far from where the posterior is, at places where the potential is so steep that the full step
        would be unstable.
        """
        return self.step * min(1.0, (moves + 1) / (self.warmup + 1)) ** 2

    def transitions(self, potential: Potential, start: Tensor, gen: Generator) -> Iterator[Walk]:
        """An endless iterator over the states after each transition, from ``start``, ``(chains, p)``."""
        state = self.init(potential, start, gen)
        while True:
            state = self.update(state, potential, gen)
            yield state

    def run(
        self, potential: Potential, start: Tensor, draws: int, gen: Generator, watch: Watch | None = None
    ) -> Chains:
        """Run the chains until they have kept ``draws`` in all, or until one diverges.

        Args:
            potential: What they walk on.
            start: Where each starts, ``(chains, p)``.
            draws: Parameter vectors to keep.
            gen: Random generator.
            watch: What to record of the chains at up to 100 points after warm-up, as ``(chains, ...)``.
        """
        return self._judged(potential, start, self.walk(potential, start, draws, gen, watch))

    def walk(
        self, potential: Potential, start: Tensor, draws: int, gen: Generator, watch: Watch | None = None
    ) -> Walked:
        """What ``run`` records, of the chains that this process computes (see ``attar.nets.members``)."""
        each, rows = -(-draws // len(start)), mine(len(start))
        stride = -(-each * self.thin // POINTS)
        kept, seen, accepted = list[Tensor](), list[Tensor](), list[Tensor]()
        stopped = None
        for number, move in enumerate(self.transitions(potential, start, gen), 1):
            theta = move.theta[rows]
            if not bool(torch.isfinite(theta).all()):
                stopped = number
                break
            if number > self.warmup:
                if move.accepted is not None:
                    accepted.append(move.accepted[rows])
                if (number - self.warmup) % self.thin == 0:
                    kept.append(theta.clone())
                if watch is not None and (number - self.warmup) % stride == 0:
                    seen.append(watch(theta))
            if len(kept) == each:
                break
        return Walked(_stacked(kept), _stacked(seen), _stacked(accepted), stopped)

    def _judged(self, potential: Potential, start: Tensor, walked: Walked) -> Chains:
        kept, seen, accepted, end = walked
        stopped = None if end is None else self._stop(end, 0 if kept is None else kept.shape[1])
        assert kept is not None  # or it has diverged
        potentials = torch.stack([potential.value(theta) for theta in kept.unbind(1)], 1)
        self._check(potential, start, potentials)
        rate = None if accepted is None else float(accepted.double().mean(0).mean())
        return Chains(kept, potentials, rate, stopped, seen)

    def infer(
        self, data: Data, network: Network, training: Training, draws: int, gen: Generator, start: Tensor | None = None
    ) -> Draws:
        """Draw from the posterior of a network, each chain from its own draw of the prior or row of ``start``."""
        chains = min(self.chains, draws)
        start = torch.stack([network.init(gen) for _ in range(chains)]) if start is None else start[:chains]
        prior, potential = self.target(network, data, training)
        n, first = potential.examples, prior.whiten(start)
        walker = replace(self, temperature=self.temperature / n)
        given, small = _Walking(walker, network, data, training, first, draws), is_small(network, data, training)
        walked = walker._judged(potential, first, Walked.joined(divided(_walk, given, chains, gen, small=small)))
        walked = walked._replace(theta=prior.unwhiten(walked.theta), potential=n * walked.potential)
        theta = walked.theta.transpose(0, 1).flatten(0, 1)[:draws]  # chains alternate, so prefixes are balanced
        return Draws(network, theta, data.spec, notes={"temperature": self.temperature, **diagnose(walked)})

    def target(self, network: Network, data: Data, training: Training) -> tuple[Prior, Whitened]:
        """The prior of a network, and the potential in units of it."""
        prior = Prior(network, self.prior_scale)
        potential = NetworkPotential(
            network,
            data,
            prior,
            examples=self.examples,
            batch=training.batch,
            augment=training.augment,
            loss=training.loss,
        )
        return prior, Whitened(potential, prior, potential.examples)

    def _check(self, potential: Potential, start: Tensor, reached: Tensor) -> None:
        """Refuse draws that lie where no chain at this temperature can be: far above the start.

        A quadratic potential has the mean energy T/2 for each parameter.
        """
        highest = potential.value(start).max() + HOTTEST * start.shape[1] * self.temperature
        if not bool((reached <= highest).all()):
            raise Diverged(
                f"The chains are unstable, with a potential far above that of their start: try step={self.step / 4:g}."
            )

    def _stop(self, number: int, kept: int) -> str:
        """Warn that a chain diverged and what to try; raise if no draw was kept."""
        message = f"A chain diverged at transition {number}: try step={self.step / 4:g}."
        if not kept:
            raise Diverged(message)
        message += f" The {kept} draws of each chain before that were kept."
        warnings.warn(message, MixingWarning, stacklevel=4)
        return message


class _Walking(NamedTuple):
    """What workers need to walk."""

    chain: Chain
    network: Network
    data: Data
    training: Training
    start: Tensor
    draws: int


def _walk(given: _Walking, gen: Generator) -> Walked:
    chain, network, data, training, start, draws = given
    prior, potential = chain.target(network, data, training)
    probes = data.x[:: -(-len(data) // PROBES)]

    def predicted(z: Tensor) -> Tensor:
        with torch.no_grad():
            return torch.stack([network(theta, probes) for theta in prior.unwhiten(z)])

    return chain.walk(potential, start, draws, gen, predicted)
