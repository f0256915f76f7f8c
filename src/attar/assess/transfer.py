"""Transfer: other networks trained on a coreset."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from statistics import mean
from typing import Any

from pydantic.dataclasses import dataclass

from attar.assess.metrics import mean_and_error
from attar.assess.score import evaluate, most_frequent, require_fitting
from attar.core import registry
from attar.core.cost import Cost, measure
from attar.core.errors import AttarError
from attar.coreset import Coreset
from attar.data import Split
from attar.infer import Draws, infer
from attar.infer.diagnose import together
from attar.nets import Network, network
from attar.nets.names import parse
from attar.nets.train import Training

#: Architectures that papers commonly transfer to.
USUAL = ("convnet", "resnet10", "vgg11", "alexnet", "mlp")


@dataclass(frozen=True)
class Transferred:
    """The scores of one network trained on a coreset: means over seeds, or the reason why it failed."""

    network: str
    parameters: int | None = None  #: None if the network cannot be built
    accuracy: float | None = None  #: mean on test
    error: float | None = None  #: its standard error over seeds
    nll: float | None = None  #: mean on test
    cost: Cost | None = None  #: of all seeds together
    problem: str | None = None
    seeds: int = 0  #: number of seeds; with one, the spread is unknown and the error 0
    balanced: float | None = None  #: mean balanced accuracy on test; None in older files, like what follows
    worst: float | None = None  #: mean of the lowest recall of a class
    majority: float | None = None  #: test accuracy of always answering the most frequent training class
    chains: dict[str, float | None] = field(default_factory=dict)  #: temperature and largest R-hat, where there are any

    def __str__(self) -> str:
        if self.accuracy is None:
            return f"{self.network}: {self.problem}"
        spread = f" ± {self.error:.3f}, {self.seeds} seeds" if self.seeds > 1 else ", one seed"
        return f"{self.network} ({self.parameters:,} parameters): accuracy {self.accuracy:.3f}{spread}"


def transfer(
    coreset: Coreset,
    split: Split,
    networks: Sequence[str] = USUAL,
    *,
    seeds: Sequence[int] = (0, 1, 2),
    draws: int = 1,
    training: Training | None = None,
    sampler: str | None = None,
    options: Mapping[str, Any] | None = None,
) -> list[Transferred]:
    """Train every network on the coreset and score it on test.

    A network that does not fit the data's shape, or whose training diverges, is reported with the error message. An
    unknown name is an error before anything runs.

    Args:
        coreset: The examples, with their learnt step size if they have one.
        split: Its ``test`` is used.
        networks: Names (see ``attar.nets.NETWORKS`` and ``sizes``).
        seeds: One posterior per seed.
        draws: Networks whose predictions are averaged.
        training: The training settings of all networks; by default the coreset's own.
        sampler: The sampler; by default the one that the coreset was made for.
        options: Its hyper-parameters.
    """
    if not seeds:
        raise AttarError("A transfer needs at least one seed: pass seeds=[0].")
    require_fitting(coreset, split)
    registry.build(sampler or coreset.recipe.sampler, options or {}, "infer")
    for name in networks:
        parse(name)

    def posterior(net: Network, seed: int) -> Draws:
        return infer(coreset, sampler, draws=draws, seed=seed, network=net, training=training, options=options)

    return [_one(posterior, split, name, seeds) for name in networks]


def sizes(depths: Sequence[int], widths: Sequence[int]) -> list[str]:
    """Names of ConvNets of every depth and width, ``CN-DxWy``, from small to large."""
    names = [f"CN-D{depth}W{width}" for depth in sorted(depths) for width in sorted(widths)]
    for name in names:
        parse(name)
    return names


def _one(posterior: Callable[[Network, int], Draws], split: Split, name: str, seeds: Sequence[int]) -> Transferred:
    try:
        net = network(name, split.spec)
    except AttarError as error:
        return Transferred(name, problem=str(error))
    try:
        with measure() as cost:
            drawn = [posterior(net, seed) for seed in seeds]
            scores = [evaluate(each, split.test) for each in drawn]
    except AttarError as error:
        return Transferred(name, net.size, cost=cost, problem=str(error))
    accuracy, spread = mean_and_error([s.accuracy for s in scores])
    return Transferred(
        name,
        net.size,
        accuracy,
        spread,
        mean(s.nll for s in scores),
        cost,
        seeds=len(scores),
        balanced=mean(s.balanced for s in scores),
        worst=mean(s.worst for s in scores),
        majority=scores[0].share(most_frequent(split.train)),
        chains=together(each.notes for each in drawn),
    )
