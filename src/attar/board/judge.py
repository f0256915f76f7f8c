"""Judge coresets on a problem, and write their score."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace as changed
from pathlib import Path

from attar.assess.distance import distance
from attar.assess.metrics import score as score_of
from attar.assess.score import most_frequent, predictions
from attar.board.centred import train_centred
from attar.board.models import stream
from attar.board.problem import Problem
from attar.board.records import write_record
from attar.board.reference import normal, tensors_of
from attar.board.results import Results, score_path
from attar.board.score import ADAPTER, Judged, Score, summarised
from attar.core import registry
from attar.core.cost import Cost, measure
from attar.core.device import device_of
from attar.core.errors import AttarError
from attar.core.files import atomic
from attar.core.streams import evaluation
from attar.coreset import Coreset
from attar.data import Split
from attar.data.download import Progress as Fetching
from attar.infer import infer
from attar.infer.contract import Posterior
from attar.infer.diagnose import LARGEST as MIXED
from attar.nets import network
from attar.plan import plan
from attar.reduce import run
from attar.study.cell import evaluation_seed
from attar.study.compared import RANDOM
from attar.study.grid import Progress
from attar.study.runner import Watch
from attar.truth import Gaussian, divergence

SEEDS = range(5)  #: of random subsets
LARGEST = 400_000  #: bytes of a coreset file that is kept on the board
CHAINED = 800  #: draws from the posterior of a Bayesian model

Source = Coreset | str | Path


def submit(
    coresets: Source | Sequence[Source],
    *,
    problem: str | None = None,
    results: str | Path = "results",
    name: str | None = None,
    evaluations: int | None = None,
    replace: bool = False,
    device: str = "cpu",
    split: Split | None = None,
    progress: Fetching | None = None,
    watch: Watch | None = None,
) -> Score:
    """Judge a coreset, or several of one method and size with different seeds, and write ``scores/…json``.

    The test set is read once for every posterior. If the board has no random subsets of this size yet, five are judged
    first, because every score says what it gains over them.

    Args:
        coresets: Coresets or their files.
        problem: The problem's name; needed if several fit.
        results: The folder of the board.
        name: What the row is called; by default the method.
        evaluations: Posteriors of each coreset; by default one, and the problem's number for a single coreset.
        replace: Whether a score of the same name and size may be replaced.
        device: Where to compute: cpu, cuda, mps.
        split: The problem's data, if it is already loaded.
        progress: Called during a download, as in ``attar.load``.
        watch: Called with a ``Progress`` after every posterior; it holds no test score.
    """
    board = Results.read(results)
    several = [coresets] if isinstance(coresets, Coreset | str | Path) else list(coresets)
    given = [(_where(source), source if isinstance(source, Coreset) else Coreset.load(source)) for source in several]
    method = _require_group(given, name)
    chosen = board.problem(problem) if problem else _fitting(board, given[0][1])
    for where, coreset in given:
        chosen.require_fitting(coreset, where)
    size = given[0][1].recipe.per_class
    path = score_path(board.folder, f"{chosen.name}--{method}-{size}")
    if path.exists() and not replace:
        raise AttarError(f"{path} exists: give another name (--name), or replace it with --replace.")
    place = device_of(device)
    data = (chosen.load(progress) if split is None else chosen.checked(split)).to(place)
    judge = Judge(chosen, data, board.folder, watch)
    random = None if method == RANDOM else judge.random(board, size)
    count = evaluations or (1 if len(given) > 1 else chosen.evaluations)
    return judge.write([coreset.to(place) for _, coreset in given], method, count, random, several)


class Judge:
    """Judges coresets on the loaded data of one problem.

    Args:
        problem: The problem.
        split: Its data.
        folder: The folder of the board.
        watch: Called after every posterior.
    """

    def __init__(self, problem: Problem, split: Split, folder: Path, watch: Watch | None = None) -> None:
        self.problem, self.split, self.folder, self.watch = problem, split, folder, watch
        self.reference = tensors_of(folder, problem)

    def random(self, board: Results, size: int) -> float:
        """The accuracy of random subsets of this size, judged now if the board has none."""
        known = board.random(self.problem.name, size)
        if known is None:
            net, training = self.problem.network, self.problem.training
            made = [
                run(plan(self.split, RANDOM, per_class=size, seed=seed, network=net, training=training))
                for seed in SEEDS
            ]
            known = self.write(made, RANDOM, 1, None, ())
        return known.accuracy

    def write(
        self, coresets: list[Coreset], method: str, count: int, random: float | None, files: Sequence[Source]
    ) -> Score:
        """Judge coresets ``count`` times each, and write their score."""
        problem, first = self.problem, coresets[0]
        runs = list(self._runs(coresets, count))
        entry = registry.methods().get(first.recipe.method)
        found = Score(
            problem=problem.name,
            judged_by=problem.checksum,
            data=problem.data,
            method=method,
            per_class=first.recipe.per_class,
            protocol=problem.protocol,
            network=problem.network,
            bytes=stored(first),
            runs=runs,
            family="" if entry is None or first.recipe.source else entry.family,
            source=first.recipe.source,
            notes=notes(problem, coresets, runs),
            coresets=self._kept(first, method, files),
            **summarised(runs, random),
        )
        write_record(score_path(self.folder, found.key), ADAPTER, found)
        return found

    def _runs(self, coresets: list[Coreset], count: int) -> Iterator[Judged]:
        total = count * len(coresets)
        for place, coreset in enumerate(coresets):
            for number in range(count):
                found = self.judged(coreset, number)
                yield found
                if self.watch:
                    said = f"{coreset.recipe.method}, seed {found.seed}: {found.validation_accuracy:.1%} on validation"
                    self.watch(Progress("posteriors", place * count + number + 1, total, said))

    def judged(self, coreset: Coreset, number: int) -> Judged:
        """One posterior of a coreset, predicted once on validation and once on test."""
        split, seed = self.split, evaluation_seed(coreset.recipe.seed, number)
        far, mixed = None, None
        with measure() as cost:
            if self.problem.model is not None:
                walked = self.problem.model.walk(coreset.data, CHAINED, stream(seed))
                mixed, draws = walked.rhat, walked.flat
                before, after = (self.problem.model.predict(draws, part) for part in (split.val, split.test))
                if self.reference is not None:
                    far = divergence(draws, Gaussian.of(self.reference["draws"].flatten(0, 1)))
            else:
                posterior = self._posterior(coreset, seed)
                before, after = (predictions(posterior, part) for part in (split.val, split.test))
        return Judged(
            coreset.recipe.seed,
            number,
            coreset.data.fingerprint,
            **Judged.scores(
                score_of(after, split.test.hard.cpu()),
                score_of(before, split.val.hard.cpu()),
                most_frequent(split.train),
            ),
            distance=None if self.reference is None else distance(after, normal(self.reference["predictive"])),
            made=coreset.recipe.cost if coreset.recipe.cost.cpu else None,
            judged=Cost(cost.wall, cost.cpu, cost.memory),
            divergence=far,
            rhat=mixed,
        )

    def _posterior(self, coreset: Coreset, seed: int) -> Posterior:
        problem = self.problem
        if problem.way is None:
            training = changed(coreset.training, steps=problem.training.steps, batch=problem.training.batch)
            return infer(coreset, draws=problem.draws, seed=seed, network=problem.network, training=training)
        data = coreset.data
        net, gen = network(problem.network, data.spec), evaluation(seed, data.device)
        validation = self.split.val.transformed(data.spec.transform)
        return train_centred(data, net, problem.training, problem.draws, gen, validation, **problem.options)

    def _kept(self, coreset: Coreset, method: str, files: Sequence[Source]) -> list[str]:
        """Copy the first file to the board, if its examples were learnt or made elsewhere and it is small."""
        path = next((Path(file) for file in files if not isinstance(file, Coreset)), None)
        if path is None or coreset.indices is not None or coreset.recipe.source or path.stat().st_size > LARGEST:
            return []
        kept = f"{self.problem.name}--{method}-{coreset.recipe.per_class}.safetensors"
        target = self.folder / "coresets" / kept
        if path.resolve() != target.resolve():
            with atomic(target) as part:
                shutil.copyfile(path, part)
        return [kept]


def notes(problem: Problem, coresets: Sequence[Coreset], runs: Sequence[Judged]) -> list[str]:
    """What must be said beside the scores of these coresets."""
    told = dict.fromkeys(note for coreset in coresets for note in problem.labels(coreset))
    repeated = len(coresets) - len({coreset.data.fingerprint for coreset in coresets})
    apart = any(run.rhat is not None and run.rhat > MIXED for run in runs)
    said = {"some seeds gave the same examples": repeated, "some chains are not shown to have mixed": apart}
    return [*told, *(note for note, holds in said.items() if holds)]


def stored(coreset: Coreset) -> int:
    """Bytes of all that was chosen or learnt: examples, labels, weights and what stands beside them."""
    parts = [coreset.data.x, coreset.data.y, coreset.data.weights, *coreset.extra.values()]
    return sum(part.nbytes for part in parts if part is not None) + (0 if coreset.step_size is None else 8)


def _where(source: Source) -> str:
    return "The coreset" if isinstance(source, Coreset) else str(source)


def _require_group(given: list[tuple[str, Coreset]], name: str | None) -> str:
    """Refuse coresets that are not of one method and size with different seeds; returns the name of their row."""
    if not given:
        raise AttarError("There is nothing to judge: give the file of a coreset.")
    first = given[0][1].recipe
    for where, coreset in given[1:]:
        if (coreset.recipe.method, coreset.recipe.per_class) != (first.method, first.per_class):
            raise AttarError(
                f"{where} is of another method or size than {given[0][0]}: submit coresets of one method and size."
            )
    seen: dict[int, str] = {}
    for where, coreset in given:
        if (seed := coreset.recipe.seed) in seen:
            raise AttarError(f"{seen[seed]} and {where} have the seed {seed}: give one coreset for each seed.")
        seen[seed] = where
    method = name or first.method
    if not re.fullmatch(r"(?!\.)[\w.+=-]+", method):
        raise AttarError(f"A name on the board has only letters, digits and . + = - _, got {method!r}: give --name.")
    if method == RANDOM != first.method:
        raise AttarError(f"The name {RANDOM} is for random subsets, not for {first.method}: give another --name.")
    return method


def _fitting(board: Results, coreset: Coreset) -> Problem:
    """The one problem of the coreset's data, shape, scaling and size under the protocol honest."""
    recipe = coreset.recipe
    known = [
        problem
        for problem in board.problems.values()
        if (problem.data, problem.loading.transform) == (recipe.data, coreset.data.spec.transform.kind)
        and problem.protocol == "honest"
        and recipe.per_class in problem.per_class
    ]
    if len(known) != 1:
        names = ", ".join(problem.name for problem in known) or ", ".join(board.problems)
        what = "Several problems fit" if known else "No problem has the data, scaling and size of"
        raise AttarError(f"{what} this coreset: name one with --problem ({names}).")
    return known[0]
