"""Everything beside the plain scores that a coreset's posterior can be asked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from attar.assess.attack import Attacked, robust_accuracy
from attar.assess.calibrate import calibrate
from attar.assess.corruption import Corrupted, corruption_table
from attar.assess.detect import out_of_distribution, selective
from attar.assess.distance import Distance, distance, distillation_ratio
from attar.assess.fairness import Fairness, fair
from attar.assess.metrics import STRICT, Scores, score
from attar.assess.privacy import Membership, membership, nearest, through
from attar.assess.score import made_from, predictions
from attar.assess.transfer import Transferred, transfer
from attar.core.errors import AttarError
from attar.core.files import read_json, write_json
from attar.coreset import Coreset
from attar.data import Data, Split
from attar.infer import Draws, infer
from attar.nets.train import Training

POINTS = 100  # of a selective-prediction curve that is kept


@dataclass(frozen=True, config=STRICT)
class Questions:
    """What to ask; each costs time, so nothing but the scores is asked unless said."""

    calibrate: bool = False  #: temperature scaling, fitted on validation data
    distance: bool = False  #: to the full data's averaged prediction
    corruption: bool = False
    attacks: tuple[str, ...] = ()
    networks: tuple[str, ...] = ()  #: to train on the coreset in place of its own
    fairness: bool = False
    privacy: bool = False
    limit: int = 1000  #: test examples for corruption and attacks


@dataclass(frozen=True, config=STRICT)
class Assessment:
    """The answers for one coreset; what was not asked is empty."""

    name: str  #: of what was judged
    scores: Scores
    selective: list[tuple[float, float]]  #: (coverage, accuracy) where only the surest predictions are kept
    diagnostics: dict[str, Any]  #: how the posterior was made, and whether its chains mixed
    temperature: float | None = None
    calibrated: Scores | None = None
    detection: dict[str, float] = field(default_factory=dict)  #: AUROC of telling another data set from this one
    distance: Distance | None = None
    ratio: float | None = None  #: accuracy in percent of the full data's
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
    """Ask a posterior, and the coreset that it was inferred from, everything that ``questions`` says.

    Whatever else must be inferred for an answer is inferred as this posterior was: same sampler, options, number of
    draws and seed.

    Args:
        coreset: What is judged.
        split: The data that it stands for.
        questions: What to ask.
        posterior: What ``attar.infer`` made of the coreset.
        training: The budget it was inferred with; the coreset's own if not set.
        strange: Data of other kinds, by name, that the posterior should be unsure about.
        watch: Called with the name of each question before it is asked, and with how far a long one is.
    """
    made_from(coreset, split)
    recipe, notes, draws = coreset.recipe, posterior.notes, len(posterior.theta)
    budget, net, seed = training or coreset.training, posterior.network.name, int(notes.get("seed", 0))
    sampler, options = str(notes.get("sampler", "ensemble")), notes.get("options")
    asked: dict[str, Any] = {}
    if questions.distance:
        watch("distance to the full data")
        full = infer(
            split.train, sampler, draws=draws, seed=seed, options=options, network=net, training=recipe.training
        )
        asked |= _against(full, posterior, split.test)
    if questions.networks:
        watch("transfer")
        asked["transfer"] = transfer(
            coreset,
            split,
            questions.networks,
            seeds=(seed,),
            draws=draws,
            training=budget,
            sampler=sampler,
            options=options,
        )
    if questions.fairness:
        watch("fairness")
        seeds = (seed, seed + 1, seed + 2)
        asked["fairness"] = fair(
            coreset, split, seeds=seeds, draws=draws, training=budget, sampler=sampler, options=options
        )
    if questions.privacy:
        watch("privacy")
        again = through(
            recipe.method,
            per_class=recipe.per_class,
            draws=draws,
            network=recipe.network,
            training=recipe.training,
            options=recipe.options,
            descent=recipe.descent or None,
            sampler=sampler,
            sampler_options=options,
        )
        asked["nearest"] = nearest(coreset, split.train).tolist()
        asked["membership"] = membership(again, split, seed=seed, watch=watch)
    return _asked_posterior(posterior, split, questions, recipe.method, seed, strange or {}, watch, asked)


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
    """Ask a posterior what needs no coreset: scores, calibration, detection, corruption and attacks."""
    if questions.networks or questions.fairness or questions.privacy or questions.distance:
        raise AttarError("Distance, transfer, fairness and privacy need the coreset itself: evaluate its file.")
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
        watch(f"telling {other} apart")
        asked.setdefault("detection", {})[other] = out_of_distribution(p, predictions(posterior, data))
    points = list(zip(curve.coverage, curve.accuracy, strict=True))
    thin = max(1, len(points) // POINTS)
    return Assessment(name, score(p, split.test.hard.cpu()), points[::thin], dict(posterior.notes), **asked)


def _against(full: Draws, posterior: Draws, test: Data) -> dict[str, Any]:
    theirs, ours = predictions(full, test), predictions(posterior, test)
    y = test.hard.cpu()
    ratio = distillation_ratio(score(ours, y).accuracy, score(theirs, y).accuracy)
    return {"distance": distance(ours, theirs), "ratio": ratio}
