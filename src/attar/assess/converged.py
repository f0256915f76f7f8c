"""The full data trained to convergence: a schedule chosen on validation, and networks that other studies reuse."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import NamedTuple

import torch
from pydantic import TypeAdapter, ValidationError
from torch import Tensor

from attar.assess.score import evaluate
from attar.core.cost import Cost, measure
from attar.core.errors import DamagedFile, MissingFile
from attar.core.files import read_tensors, set_aside, write_tensors
from attar.core.lock import in_turn
from attar.core.streams import evaluation, seed_of
from attar.data import Data, Split
from attar.infer import Draws
from attar.nets import Network
from attar.nets.train import Training, train

FORMAT = "attar-reference-2"  #: the first had random seeds that a reduction may have
EPOCHS = 30  #: no number of steps beyond the first two goes through the data more often
ACCURACY, NLL = 0.002, 0.02  #: a doubling pays if validation accuracy rises, or NLL falls, by this much
EXAMPLES = 2  #: and accuracy by as many examples: one more is luck


class Rung(NamedTuple):
    """Validation scores of one network trained for this number of steps."""

    steps: int
    accuracy: float
    nll: float


class Reference(NamedTuple):
    """Networks trained to convergence, how their number of steps was chosen, and what all of that cost."""

    posterior: Draws
    rungs: list[Rung]
    rising: bool  #: whether the last doubling still paid, so that only the limit of epochs ended the search
    cost: Cost

    @property
    def steps(self) -> int:
        return chosen(self.rungs).steps


def converged(
    split: Split, network: Network, training: Training, draws: int, seed: int, epochs: int = EPOCHS
) -> Reference:
    """Networks trained on all training examples for as long as it pays on validation.

    One network is trained for the steps of ``training``, one for twice as many, and so on, each under a cosine schedule
    of its length, until a doubling improves neither accuracy nor NLL on validation, or would go through the data more
    than ``epochs`` times. The number of steps with the highest validation accuracy is taken for all ``draws`` networks.

    Every network is a file in ``$ATTAR_REFERENCES``, else ``~/.cache/attar/references``, under a hash of the data, the
    network and the training settings: a study that needs it again, or resumes, does not train it again.
    """
    store, spent = Store.of(split.train, network, training), Cost()

    def trained(draw: int, steps: int) -> Tensor:
        nonlocal spent
        theta, cost = store.network(seed, draw, steps)
        spent = spent + cost
        return theta

    def rung(steps: int) -> Rung:
        scores = evaluate(Draws(network, trained(0, steps)[None], split.spec), split.val)
        return Rung(steps, scores.accuracy, scores.nll)

    least = max(ACCURACY, EXAMPLES / len(split.val))
    rungs, rising = ladder(rung, training.steps, epochs * len(split.train) // training.batch, least)
    steps = chosen(rungs).steps
    first = store.network(seed, 0, steps)[0]  # its cost is counted
    theta = torch.stack([first, *(trained(draw, steps) for draw in range(1, draws))])
    return Reference(Draws(network, theta, split.spec, {"sampler": "ensemble"}), rungs, rising, spent)


def ladder(rung: Callable[[int], Rung], first: int, last: int, least: float = ACCURACY) -> tuple[list[Rung], bool]:
    """Scores at ``first`` steps, at twice as many, and so on while it pays, and whether it still paid at the end.

    Args:
        rung: The scores at a number of steps.
        first: The first number of steps; twice as many are always tried.
        last: The largest number of steps otherwise.
        least: A gain in accuracy that pays.
    """
    rungs = [rung(first), rung(2 * first)]
    while (rising := pays(rungs[:-1], rungs[-1], least)) and 2 * rungs[-1].steps <= last:
        rungs.append(rung(2 * rungs[-1].steps))
    return rungs, rising


def pays(before: list[Rung], after: Rung, least: float = ACCURACY) -> bool:
    """Whether more steps improved on all before them, in accuracy or in NLL."""
    accuracy, nll = max(rung.accuracy for rung in before), min(rung.nll for rung in before)
    return after.accuracy >= accuracy + least or after.nll <= nll - NLL


def chosen(rungs: list[Rung]) -> Rung:
    """The highest accuracy, then the lowest NLL, then the fewest steps."""
    return max(rungs, key=lambda rung: (rung.accuracy, -rung.nll, -rung.steps))


@dataclass(frozen=True)
class Store:
    """A folder of networks trained on one data set; its name holds a hash of all that they depend on."""

    folder: Path
    identity: str
    data: Data
    net: Network
    training: Training

    @staticmethod
    def of(data: Data, network: Network, training: Training) -> Store:
        """The store of this data, network and training; the number of steps is that of each network."""
        kept = asdict(replace(training, steps=1, schedule="cosine"))
        about = {"format": FORMAT, "data": data.fingerprint, "network": network.name, "training": kept}
        identity = hashlib.blake2b(json.dumps(about, sort_keys=True).encode(), digest_size=16).hexdigest()
        root = Path(os.environ.get("ATTAR_REFERENCES") or "~/.cache/attar/references").expanduser()
        plain = "".join(c if c.isalnum() or c in "-_." else "-" for c in data.spec.name)
        return Store(root / f"{plain}-{network.name}-{identity[:16]}", identity, data, network, training)

    def network(self, seed: int, draw: int, steps: int) -> tuple[Tensor, Cost]:
        """A network's parameters and what they cost: from its file, or trained and written now."""
        path = self.folder / f"{seed}-{draw}-{steps}.safetensors"
        with suppress(MissingFile, DamagedFile):
            return self._read(path)
        with in_turn(path):  # another process may be training it
            try:
                return self._read(path)
            except MissingFile:
                return self._make(path, seed, draw, steps)
            except DamagedFile as damaged:
                set_aside(damaged, "the network is trained again")
                return self._make(path, seed, draw, steps)

    def _make(self, path: Path, seed: int, draw: int, steps: int) -> tuple[Tensor, Cost]:
        budget = replace(self.training, steps=steps, schedule="cosine")
        gen = evaluation(seed_of("converged", seed, draw), self.data.device, "converged")
        with measure() as cost:
            theta = train(self.net, self.data, budget, gen)[0]
        about = {"identity": self.identity, "digest": _digest(theta), "cost": json.dumps(asdict(cost))}
        write_tensors(path, {"theta": theta}, {"format": FORMAT, **about})
        return theta, cost

    def _read(self, path: Path) -> tuple[Tensor, Cost]:
        tensors, header = read_tensors(path)
        theta, told = tensors.get("theta"), header.get("cost", "")
        try:
            cost = TypeAdapter(Cost).validate_json(told)
        except ValidationError:
            raise DamagedFile(path, "does not say what it cost", "move it away.") from None
        if (
            theta is None
            or (theta.shape, theta.dtype) != ((self.net.size,), torch.float32)
            or header.get("digest") != _digest(theta)
        ):
            raise DamagedFile(path, "holds other parameters than were written", "move it away.")
        if (header.get("format"), header.get("identity")) != (FORMAT, self.identity):
            raise DamagedFile(path, "is of other data, another network or other training", "move it away.")
        return theta.to(self.data.device), cost


def _digest(theta: Tensor) -> str:
    return hashlib.blake2b(theta.detach().cpu().numpy().tobytes(), digest_size=16).hexdigest()
