"""Shared by the studies of selection: data set, scoring network, training budget, and a file per result."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

import attar
from attar.core import registry
from attar.core.cost import Cost, measure
from attar.core.errors import AttarError
from attar.core.files import read_json, write_json
from attar.data import Data, Split
from attar.engine import Engine, run_all
from attar.nets.train import Training
from attar.select import budget
from attar.select.contract import Selection
from attar.select.keep import SelectionWarning, digest, streams
from attar.select.view import View
from benchmarks import WORK

Options = Mapping[str, Any]
Row = tuple[str, Options]  #: a method and its options
Result = TypeVar("Result")


@dataclass(frozen=True)
class Setting:
    """Settings that all cells of a table share."""

    data: str = "fashion-mnist"
    examples: int | None = None  #: number of training examples; all if not set
    network: str = "convnet-d3w16"
    scoring: Training = Training(steps=1055)  #: training of the scoring network; 5 epochs of 54,000 examples
    training: Training = Training(steps=100, batch=100)  #: on the picks, and on the full data
    draws: int = 1
    test: bool = True  #: whether the test set is read; choices are made without it
    folder: Path = field(default=WORK / "selection_study", repr=False)

    def plain(self) -> dict[str, Any]:
        """As plain values for a result file."""
        values = asdict(self)
        del values["folder"]
        return values


class Bench:
    """One setting; every result is cached in a file, keyed by everything that determines it."""

    def __init__(self, setting: Setting, fractions: Sequence[float]) -> None:
        self.setting, self.fractions, self.split = setting, sorted(fractions), _split(setting.data)
        self.train = self.split.train[: setting.examples]
        self.folder = setting.folder / digest(repr(setting))[:12]
        self.network = attar.network(setting.network, self.train.shape, self.train.classes)
        self._losses: dict[int, Tensor] = {}

    def view(self, seed: int) -> View:
        """The view that all methods of a seed share: its network is trained once, then read from disk."""
        (_, gen), held = streams(seed, torch.device("cpu")), self.split.val  # not that of training on the picks
        return View(
            self.train, self.network, self.setting.scoring, gen, validation=held, cache=self.setting.folder / "views"
        )

    def scoring(self, seed: int) -> dict[str, Any]:
        """The cost of training a seed's scoring network, with one forward pass of the data."""
        return self._kept(f"scoring-{seed}", lambda: asdict(timed(lambda: self.view(seed).logits)[1]))

    def cell(
        self, method: str, options: Options, fraction: float, seed: int, network: str | None = None
    ) -> dict[str, Any]:
        """Scores of a network trained on the picks (by default the scoring architecture), and the cost of the picks."""
        picked = self.picks(method, options, seed)[str(fraction)]
        data = replace(self.train[torch.tensor(picked["indices"])], weights=_weights(picked))
        name = "-".join(["cell", _key(method, options), str(fraction), str(seed), *([network] if network else [])])
        return {**self._kept(name, lambda: self.learnt(data, seed, network)), "selection": picked["cost"]}

    def full(self, seed: int) -> dict[str, Any]:
        """Scores of a network trained on the whole training set."""
        return self._kept(f"full-{seed}", lambda: self.learnt(self.train, seed))

    def picks(self, method: str, options: Options, seed: int) -> dict[str, Any]:
        """Picks, weights and cost by fraction."""
        name = f"picks-{_key(method, options)}-{'-'.join(map(str, self.fractions))}-{seed}"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SelectionWarning)  # the scores show what they warn of
            return self._kept(name, lambda: self._selected(method, options, seed))

    def hardness(self, method: str, options: Options, fraction: float, seed: int) -> float:
        """The mean loss of the picks under the scoring network, relative to that of all examples."""
        if seed not in self._losses:
            self._losses[seed] = self.view(seed).losses
        losses, picked = self._losses[seed], self.picks(method, options, seed)[str(fraction)]
        return float(losses[torch.tensor(picked["indices"])].mean() / losses.mean())

    def gap(self, method: str, options: Options, fraction: float, seed: int, radius: float) -> float:
        """The loss-curvature gap of picks; without weights, each represents an equal share of its class."""
        picked, hard = self.picks(method, options, seed)[str(fraction)], self.train.hard
        indices, weights = torch.tensor(picked["indices"]), _weights(picked)
        if weights is None:
            weights = (hard.bincount() / hard[indices].bincount())[hard[indices]]
        return gap(self.view(seed), indices, weights, radius)

    def _selected(self, method: str, options: Options, seed: int) -> dict[str, Any]:
        """The picks of all fractions from one view, with the cost of each.

        Without weights, most methods pick for a smaller fraction the first of a larger one's in every class; these are
        not selected again, and their cost is that of the largest.
        """
        view, chosen = self.view(seed), registry.build(method, options, "select")
        if method != "uniform":  # a random subset looks at nothing
            if chosen.seen(view) is view:
                self.scoring(seed)
            _ = chosen.seen(view).logits  # its training is not the method's cost

        def select(fraction: float) -> tuple[Selection, Cost]:
            return timed(
                lambda: attar.select(view, method, options=options, fraction=fraction, balanced=True, seed=seed)
            )

        largest = self.fractions[-1]
        found = {largest: select(largest)}
        picked, cost = found[largest]
        nested = picked.weights is None and chosen.nested
        for fraction in self.fractions[:-1]:
            found[fraction] = (self._first(picked, fraction), cost) if nested else select(fraction)
        return {
            str(fraction): {
                "indices": picked.indices.tolist(),
                "weights": None if picked.weights is None else picked.weights.tolist(),
                "cost": asdict(cost),
            }
            for fraction, (picked, cost) in sorted(found.items())
        }

    def _first(self, picked: Selection, fraction: float) -> Selection:
        """The first picks of every class, as many as a smaller fraction asks for."""
        hard = self.train.hard
        wanted = budget.share(hard.bincount(), budget.total(len(self.train), fraction=fraction))
        classes = hard[picked.indices]
        places = torch.cat([(classes == c).nonzero().flatten()[:size] for c, size in enumerate(wanted)])
        return Selection(picked.indices[places], picked.scores[places])

    def learnt(self, data: Data, seed: int, network: str | None = None) -> dict[str, Any]:
        training, draws = self.setting.training, self.setting.draws
        posterior, cost = timed(
            lambda: attar.infer(data, draws=draws, seed=seed, network=network or self.network, training=training)
        )
        scores = {"validation": attar.evaluate(posterior, self.split.val).accuracy}
        if self.setting.test:
            test = attar.evaluate(posterior, self.split.test)
            scores |= {"accuracy": test.accuracy, "nll": test.nll}
        return {**scores, "size": len(data), "learning": asdict(cost)}

    def _kept(self, name: str, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        path = self.folder / f"{name}.json"
        if not path.exists():
            write_json(path, make())
        kept: dict[str, Any] = read_json(path)
        return kept


def fill(
    setting: Setting,
    fractions: Sequence[float],
    rows: Sequence[Row],
    seeds: Sequence[int],
    networks: Sequence[str | None] = (None,),
    workers: int = 1,
) -> Bench:
    """Compute all cells in parallel: first the scoring network of each seed, then methods and seeds."""
    shared, engine = (setting, fractions, networks), Engine(workers=workers)
    for _ in run_all(_score, shared, seeds, engine):
        pass
    for (method, options, seed), best in run_all(
        _learn, shared, [(*row, seed) for seed in seeds for row in rows], engine
    ):
        sys.stderr.write(f"{_key(method, options)}, seed {seed}: {best:.1%}\n")
    return Bench(setting, fractions)


Shared = tuple[Setting, Sequence[float], Sequence[str | None]]


def _score(shared: Shared, seed: int) -> None:
    Bench(*shared[:2]).scoring(seed)


def _learn(shared: Shared, job: tuple[str, Options, int]) -> float:
    """All fractions and networks of a method and seed; returns the best validation accuracy."""
    setting, fractions, networks = shared
    method, options, seed = job
    bench = Bench(setting, fractions)
    cells = [bench.cell(method, options, f, seed, network) for f in fractions for network in networks]
    return max(float(cell["validation"]) for cell in cells)


def gap(view: View, picks: Tensor, weights: Tensor, radius: float, ways: int = 50) -> float:
    """Eq. 4 of LCMat, in units of the radius: the largest change in the difference between the losses of all examples
    and of the weighted picks within ``radius`` of the last layer, over random directions and the two that are worst to
    first order.
    """
    worst = view.gradients.mean() - view.gradients[picks].sum(weights) / weights.sum()
    tried = torch.randn(ways, *worst.shape, generator=torch.Generator().manual_seed(0))
    tried = torch.cat([tried, worst[None], -worst[None]])
    tried = radius * tried / tried.flatten(1).norm(dim=1)[:, None, None]
    h = view.features.shape[1]

    def difference(shift: Tensor) -> float:
        logits = view.logits + view.features @ shift[:, :h].T + (shift[:, h] if view.bias else 0.0)
        losses = cross_entropy(logits, view.y, reduction="none")
        return float((losses.mean() - (weights * losses[picks]).sum() / weights.sum()).abs())

    here = difference(torch.zeros_like(worst))
    return max(difference(shift) - here for shift in tried) / radius


def timed(work: Callable[[], Result]) -> tuple[Result, Cost]:
    """The result of a function, and its cost."""
    with measure() as cost:
        result = work()
    return result, cost


def _weights(picked: Mapping[str, Any]) -> Tensor | None:
    return None if picked["weights"] is None else torch.tensor(picked["weights"])


def _key(method: str, options: Options) -> str:
    return "-".join([method, *(f"{name}={value}" for name, value in sorted(options.items()))])


@cache
def _split(name: str) -> Split:
    try:
        return attar.load(name, download=False)
    except AttarError as error:
        raise AttarError(f"The study of selection needs {name}: {error}") from error
