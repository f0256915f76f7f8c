"""Further questions about a coreset and its posterior, beyond the scores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from attar.assess.attack import Attacked, robust_accuracy
from attar.assess.calibrate import calibrate
from attar.assess.converged import converged
from attar.assess.corruption import Corrupted, corruption_table
from attar.assess.detect import out_of_distribution, selective
from attar.assess.distance import Distance, distance, distillation_ratio
from attar.assess.fairness import Fairness, fair
from attar.assess.metrics import STRICT, Scores, score
from attar.assess.privacy import Membership, membership, nearest, through
from attar.assess.score import evaluate, made_from, predictions
from attar.assess.transfer import Transferred, transfer
from attar.core.errors import AttarError
from attar.core.files import read_json, write_json
from attar.core.streams import seed_of
from attar.coreset import Coreset
from attar.data import Data, Split
from attar.infer import Draws, infer
from attar.nets import network
from attar.nets.train import Training

NEIGHBOURS = "knn"  # the sampler whose posterior has no network to train
POINTS = 100  # points kept of a selective-prediction curve


@dataclass(frozen=True, config=STRICT)
class Questions:
    """Which questions to answer besides the scores; each takes time."""

    calibrate: bool = False  #: temperature scaling, fitted on validation data
    distance: bool = False  #: to the full data's averaged prediction
    corruption: bool = False
    attacks: tuple[str, ...] = ()
    networks: tuple[str, ...] = ()  #: other networks to train on the coreset
    fairness: bool = False
    privacy: bool = False
    limit: int = 1000  #: test examples for corruption and attacks
    converged: bool = True  #: with the distance, whether the full data is also trained to convergence, for the ratio


@dataclass(frozen=True, config=STRICT)
class Assessment:
    """The answers for one coreset or posterior; those not asked for are empty."""

    name: str  #: of the method or posterior
    scores: Scores
    selective: list[tuple[float, float]]  #: (coverage, accuracy) if only the most confident predictions are kept
    diagnostics: dict[str, Any]  #: how the posterior was made, and whether its chains mixed
    temperature: float | None = None
    calibrated: Scores | None = None
    detection: dict[str, float] = field(default_factory=dict)  #: AUROC of out-of-distribution detection, by data set
    distance: Distance | None = None  #: to the full data's posterior, with a seed of its own
    floor: Distance | None = None  #: between two posteriors of the full data that differ in the seed alone
    ratio: float | None = None  #: accuracy as a percentage of the full data's
    converged: bool = False  #: whether that was trained to convergence, else with the same training as the coreset
    corruption: list[Corrupted] = field(default_factory=list)
    attacks: list[Attacked] = field(default_factory=list)
    transfer: list[Transferred] = field(default_factory=list)
    fairness: Fairness | None = None
    nearest: list[float] = field(default_factory=list)
    membership: Membership | None = None

    def save(self, path: str | Path) -> None:
        write_json(path, TypeAdapter(Assessment).dump_python(self, mode="json"))

    @staticmethod
    def load(path: str | Path) -> Assessment:
        try:
            return TypeAdapter(Assessment).validate_python(read_json(path))
        except ValidationError as error:
            first = error.errors()[0]
            raise AttarError(f"{path} is not an assessment ({first['msg']}): make it with `attar evaluate`.") from error


def assess(
    coreset: Coreset,
    split: Split,
    questions: Questions,
    posterior: Draws,
    *,
    training: Training | None = None,
    strange: dict[str, Data] | None = None,
    watch: Callable[[str], None] = lambda question: None,
) -> Assessment:
    """Answer the questions about a coreset and a posterior that was inferred from it.

    Other posteriors that an answer needs are inferred in the same way: same sampler, options and number of draws. Those
    of the coreset have the same seed, and those of the full data, for the distance, seeds of their own.

    Args:
        coreset: The coreset.
        split: The data that it was made from.
        questions: Which questions to answer.
        posterior: What ``attar.infer`` returned for the coreset.
        training: The training settings of that inference; by default the coreset's own.
        strange: Out-of-distribution data, by name.
        watch: Called with the name of each question before it starts, and with the progress of a long one.
    """
    made_from(coreset, split)
    how = _How.of(posterior, training or coreset.training)
    asked: dict[str, Any] = {}
    if questions.distance:
        watch("distance to the full data")
        asked |= _distance(coreset, split, posterior, how)
        if questions.converged:
            watch("full data, trained to convergence")
            asked |= _converged(coreset, split, posterior, how)
    if questions.networks:
        watch("transfer")
        asked["transfer"] = transfer(coreset, split, questions.networks, seeds=(how.seed,), **how.settings)
    if questions.fairness:
        watch("fairness")
        seeds = (how.seed, how.seed + 1, how.seed + 2)
        asked["fairness"] = fair(coreset, split, seeds=seeds, **how.settings)
    if questions.privacy:
        watch("privacy")
        asked["nearest"] = nearest(coreset, split.train).tolist()
        asked["membership"] = _membership(coreset, split, how, watch)
    method = coreset.recipe.method
    return _asked_posterior(posterior, split, questions, method, how.seed, strange or {}, watch, asked)


def question(
    posterior: Draws,
    split: Split,
    questions: Questions,
    *,
    name: str = "posterior",
    seed: int = 0,
    strange: dict[str, Data] | None = None,
    watch: Callable[[str], None] = lambda question: None,
) -> Assessment:
    """Answer the questions that need no coreset: scores, calibration, detection, corruption and attacks."""
    if questions.networks or questions.fairness or questions.privacy or questions.distance:
        raise AttarError("Distance, transfer, fairness and privacy need the coreset itself: evaluate its file instead.")
    return _asked_posterior(posterior, split, questions, name, seed, strange or {}, watch, {})


def _asked_posterior(
    posterior: Draws,
    split: Split,
    questions: Questions,
    name: str,
    seed: int,
    strange: dict[str, Data],
    watch: Callable[[str], None],
    asked: dict[str, Any],
) -> Assessment:
    watch("scores")
    p = predictions(posterior, split.test)
    curve = selective(p, split.test.hard.cpu())
    if questions.calibrate:
        tempered = calibrate(posterior, split.val)
        asked["temperature"] = tempered.temperature
        asked["calibrated"] = score(predictions(tempered, split.test), split.test.hard.cpu())
    if questions.corruption:
        watch("corruption")
        asked["corruption"] = corruption_table(posterior, split.test, seed=seed, limit=questions.limit)
    for attack in questions.attacks:
        watch(f"attack: {attack}")
        found = robust_accuracy(posterior, split.test, attack=attack, seed=seed, limit=questions.limit)
        asked.setdefault("attacks", []).append(found)
    for other, data in strange.items():
        watch(f"out-of-distribution detection: {other}")
        asked.setdefault("detection", {})[other] = out_of_distribution(p, predictions(posterior, data))
    points = list(zip(curve.coverage, curve.accuracy, strict=True))
    thin = max(1, len(points) // POINTS)
    return Assessment(name, score(p, split.test.hard.cpu()), points[::thin], dict(posterior.notes), **asked)


class _How(NamedTuple):
    """How a posterior was inferred, so that others are inferred in the same way."""

    sampler: str
    options: dict[str, Any] | None
    draws: int
    training: Training
    seed: int

    @staticmethod
    def of(posterior: Draws, training: Training) -> _How:
        notes = posterior.notes
        sampler, seed = str(notes.get("sampler", "ensemble")), int(notes.get("seed", 0))
        return _How(sampler, notes.get("options"), len(posterior.theta), training, seed)

    @property
    def settings(self) -> dict[str, Any]:
        """All but the seed, as arguments of ``infer``, ``transfer`` and ``fair``."""
        return {"sampler": self.sampler, "options": self.options, "draws": self.draws, "training": self.training}


def _distance(coreset: Coreset, split: Split, posterior: Draws, how: _How) -> dict[str, Any]:
    """The distance to the full data's posterior, trained with the settings of the recipe, and between two of these.

    The same seed would give both posteriors the same initial networks, and a smaller distance.
    """
    settings = {**how.settings, "training": coreset.recipe.training, "network": posterior.network.name}
    fulls = [infer(split.train, seed=seed_of("full", how.seed, number), **settings) for number in (0, 1)]
    ours, theirs, others = (predictions(each, split.test) for each in (posterior, *fulls))
    y = split.test.hard.cpu()
    ratio = distillation_ratio(score(ours, y).accuracy, score(theirs, y).accuracy)
    return {"distance": distance(ours, theirs), "floor": distance(theirs, others), "ratio": ratio}


def _converged(coreset: Coreset, split: Split, posterior: Draws, how: _How) -> dict[str, Any]:
    """The accuracy as a percentage of that of the full data trained to convergence, which studies share."""
    recipe = coreset.recipe
    net = network(recipe.network, split.spec) if how.sampler == NEIGHBOURS else posterior.network
    found = converged(split, net, recipe.training, how.draws, recipe.seed)
    ours, theirs = (evaluate(each, split.test).accuracy for each in (posterior, found.posterior))
    return {"ratio": distillation_ratio(ours, theirs), "converged": True}


def _membership(coreset: Coreset, split: Split, how: _How, watch: Callable[[str], None]) -> Membership:
    recipe = coreset.recipe
    again = through(
        recipe.method,
        per_class=recipe.per_class,
        draws=how.draws,
        network=recipe.network,
        training=recipe.training,
        options=recipe.options,
        descent=recipe.descent or None,
        sampler=how.sampler,
        sampler_options=how.options,
    )
    return membership(again, split, seed=how.seed, watch=watch)
