"""The trainings and chains of one posterior, shared out among workers.

Every worker draws the random numbers of all of them in the same order, as one process does, and computes the gradients
of its own: the result has the same bits for any number of workers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Generator, Tensor

from attar.data import Data
from attar.engine.pool import LOCAL, Engine, run_all
from attar.engine.share import Share
from attar.nets import Network
from attar.nets.fast.engine import together
from attar.nets.fast.modes import current, using
from attar.nets.members import mine, only
from attar.nets.train import Training, train

Given = TypeVar("Given")
Result = TypeVar("Result")
_engine = ContextVar("engine", default=LOCAL)


@contextmanager
def dividing(engine: Engine) -> Iterator[None]:
    """A context in which trainings and chains are shared out among the workers of an engine."""
    before = _engine.set(engine)
    try:
        yield
    finally:
        _engine.reset(before)


def divided(
    work: Callable[[Given, Generator], Result], given: Given, count: int, gen: Generator, *, small: bool
) -> list[Result]:
    """What ``work(given, gen)`` returns of the members of every worker, in their order.

    Args:
        work: A module-level function, which returns the rows ``mine(count)``.
        given: Its argument.
        count: Members in all.
        gen: Left as it is after ``work``.
        small: Whether all members are computed at once, so that nothing is gained by sharing them out.
    """
    engine = _engine.get()
    size = 1 if small or engine.here else count if engine.where == "ray" else min(engine.workers, count)
    if size == 1:
        here = Engine(cpus_per_job=engine.cpus_per_job)
        return [result for _, result in run_all(_whole, (work, given), [gen], here)]
    shared = _Shared(work, given, count, gen.get_state(), gen.device, current())
    shares = [Share(rank, size) for rank in range(size)]
    found = dict(run_all(_part, shared, shares, engine.at_most(size)))
    gen.set_state(found[shares[0]][1])
    return [found[share][0] for share in shares]


def _whole(shared: tuple[Callable[[Given, Generator], Result], Given], gen: Generator) -> Result:
    work, given = shared
    return work(given, gen)


class _Shared(NamedTuple):
    """What all workers need."""

    work: Callable[[Any, Generator], Any]
    given: Any
    members: int
    state: Tensor  #: of the generator
    device: torch.device
    mode: str  #: of gradients


def _part(shared: _Shared, share: Share) -> tuple[Any, Tensor]:
    gen = torch.Generator(shared.device)
    gen.set_state(shared.state)
    with only(share.rows(shared.members), shared.members), using(shared.mode):
        return shared.work(shared.given, gen), gen.get_state()


def is_small(network: Network, data: Data, training: Training) -> bool:
    """Whether several networks are computed at once."""
    return together(network, shared=False, examples=min(len(data), training.batch))


class _Trainings(NamedTuple):
    network: Network
    data: Data
    training: Training
    start: Tensor
    average: float


def trained(
    network: Network,
    data: Data,
    training: Training,
    gen: Generator,
    draws: int,
    start: Tensor | None = None,
    average: float = 0.0,
) -> Tensor:
    """As ``train``, by the workers of ``dividing``."""
    first = torch.stack([network.init(gen) for _ in range(draws)]) if start is None else start
    given, small = _Trainings(network, data, training, first, average), is_small(network, data, training)
    parts = divided(_train, given, len(first), gen, small=small)
    return parts[0] if len(parts) == 1 else torch.cat(parts)


def _train(given: _Trainings, gen: Generator) -> Tensor:
    network, data, training, start, average = given
    theta, rows = train(network, data, training, gen, start=start, average=average), mine(len(start))
    return theta if rows == slice(0, len(start)) else theta[rows].clone()  # without the memory of the others
