"""Question: which method is best on which kind of data, so that `attar recommend` can say so?

The same methods with the same settings on images, texts and tables, with small networks, short training and few seeds,
so that all of it takes about a quarter of an hour of one core. Large sets are sampled, and their images have half of
their height and width. Choices use validation scores only, so the tables, which are small, give half of their training
rows to validation. An interrupted benchmark resumes.

The means of all studies become the evidence that the package ships. It is judged by leaving one data set out: a method
is chosen for it by the evidence of the others, and the regret is what the best method has more, in points of accuracy
(or in NLL for the goal calibration), on validation data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import mean
from typing import Any

import torch
from pydantic import TypeAdapter
from sklearn import datasets
from torch import Generator

from attar.assess.statistics import t_interval
from attar.core.files import write_json, write_text
from attar.data import Split
from attar.nets.train import Training
from attar.recommend import evidence as shipped
from attar.recommend.choose import ranking
from attar.recommend.evidence import FILE, About, Evidence, Problem, Score, Settings
from attar.study import Study, StudySpec
from attar.study.results import Run
from attar.study.spec import FULL
from benchmarks import RESULTS, WORK, carry_out

NAME = "recommend"
TRAIN, HELD = 5000, 2000  #: most examples of a training set, and of a validation or test set
COMMON = StudySpec(
    methods=("k-center", "k-means", "lcmat-s", "k-means-centres", "label-solve", "kip", "dm", "vbpc"),
    per_class=(1, 10),
    training=Training(steps=120, batch=64),
    draws=1,
    converged=False,
    variants={"vbpc-long": "vbpc"},
    options={"dm": {"batch": 32}, "kip": {"batch": 256}, "vbpc": {"batch": 128}, "frepo": {"batch": 128}}
    | {"vbpc-long": {"batch": 128}},
    descent={"dm": {"steps": 150}, "kip": {"steps": 200}, "vbpc": {"steps": 200}, "frepo": {"steps": 200}}
    | {"vbpc-long": {"steps": 600}},
)
FIXED = ("dm", "vbpc", "herding")  #: what recommendations are compared with: always this method
EVIDENCE = Path(shipped.__file__).with_name(FILE)
TABLES = ("iris", "wine", "breast_cancer")
IMAGES = {"digits": None, "mnist": "14", "fashion-mnist": "14", "cifar10": "16"}  #: with the size they are brought to
TEXTS = ("trec6", "sst5")
_OTHERS = replace(COMMON, methods=(*COMMON.methods, "frepo"))
_IMAGES = replace(COMMON, methods=(*COMMON.methods, "vbpc-long"), network="convnet-d2w8", seeds=(0, 1))
SPECS: Mapping[str, StudySpec] = {
    **{name: replace(_OTHERS, val=0.5) for name in TABLES},
    **{name: replace(_OTHERS, data=name) for name in TEXTS},
    "digits": replace(_IMAGES, data="digits", val=0.3),
    **{name: replace(_IMAGES, data=name, resize=size) for name, size in IMAGES.items() if size is not None},
}


def main() -> list[Path]:
    """Run every study; write their JSON files and tables, the evidence of the package, and its regret."""
    torch.set_num_threads(1)
    written = []
    for name, spec in SPECS.items():
        study = carry_out(spec, f"{NAME}/{name}", workers=1, split=split_of(name))
        written += _publish(study, RESULTS / NAME / name)
    known = evidence([Study.load(path) for path in studies()])
    write_json(EVIDENCE, TypeAdapter(Evidence).dump_python(known, mode="json"))
    write_json(RESULTS / NAME / "regret.json", regrets(known))
    return [*written, EVIDENCE, RESULTS / NAME / "regret.json"]


def studies() -> list[Path]:
    """The files of the published studies."""
    return [path for name in SPECS if (path := RESULTS / NAME / name / "study.json").exists()]


def evidence(found: Sequence[Study]) -> Evidence:
    """What the package ships of these studies: means over seeds on validation data."""
    problems = [_problem(study, size) for study in found for size in COMMON.per_class]
    names = dict.fromkeys(name for problem in problems for name in problem.scores)
    own = [Settings(COMMON.method(name), COMMON.options.get(name, {}), COMMON.descent.get(name, {})) for name in names]
    return Evidence(dict(zip(names, own, strict=True)), problems)


def _problem(study: Study, size: int) -> Problem:
    name, groups = study.data["name"], study.groups()
    kind = "table" if name in TABLES else "text" if name in TEXTS else "image"
    about = About(kind, study.data["train"], len(study.data["classes"]), size)
    scores = {method: _score(runs) for (method, each), runs in groups.items() if each == size}
    return Problem(name, about, _score(groups[FULL, None]), scores)


def _score(runs: Sequence[Run]) -> Score:
    values = {name: mean(getattr(run.validation, name) for run in runs) for name in ("accuracy", "nll", "ece")}
    cpu = mean(run.reduce_cost.cpu for run in runs)
    return Score(**{name: round(value, 4) for name, value in values.items()}, cpu=round(cpu, 3))


def regrets(known: Evidence) -> dict[str, Any]:
    """What a recommendation loses against the best method, without the results of the data set that it is for."""
    found: dict[str, Any] = {}
    for goal in ("accuracy", "calibration"):
        rows = [_row(problem, known, goal) for problem in known.problems]
        sets = list(dict.fromkeys(row["data"] for row in rows))
        # The two sizes of a data set are not independent, so each set counts once.
        means = {
            way: [mean(row["regret"][way] for row in rows if row["data"] == name) for name in sets]
            for way in ("recommend", *FIXED)
        }
        less = {way: [a - b for a, b in zip(means[way], means["recommend"], strict=True)] for way in FIXED}
        found[goal] = {
            "rows": rows,
            "mean": {way: round(mean(values), 3) for way, values in means.items()},
            "less": {way: [round(v, 3) for v in t_interval(values) if v is not None] for way, values in less.items()},
        }
    return {"command": f"python -m benchmarks {NAME}", **found}


def _row(problem: Problem, known: Evidence, goal: str) -> dict[str, Any]:
    others = [other for other in known.problems if other.data != problem.data]
    chosen = ranking(problem.about, replace(known, problems=others), goal)[0].name
    worth = {
        name: -score.nll if goal == "calibration" else 100 * score.accuracy for name, score in problem.scores.items()
    }
    best = max(worth, key=worth.__getitem__)
    ways = {"recommend": chosen, **{name: name for name in FIXED}}
    regret = {way: round(worth[best] - worth[name], 3) for way, name in ways.items()}
    return {
        "data": problem.data,
        "per_class": problem.about.per_class,
        "chosen": chosen,
        "best": best,
        "regret": regret,
    }


def _publish(study: Study, folder: Path) -> list[Path]:
    """Write a study without its curves and answers, which nothing here uses, and its table."""
    short = [replace(run, curve=[], answers=None) for run in study.runs]
    replace(study, runs=short).save(folder / "study.json")
    write_text(folder / "table.csv", study.csv())
    return sorted(folder.iterdir())


def _table(name: str) -> Path:
    """A table that scikit-learn ships, as a CSV file with the label in the column ``target``."""
    path = WORK / NAME / "tables" / f"{name}.csv"
    found = getattr(datasets, f"load_{name}")(as_frame=True)
    write_text(path, found.frame.to_csv(index=False))
    return path


def split_of(name: str) -> Split:
    """The data of a study: a table of scikit-learn, or a sample of a set that is loaded by its name."""
    spec = SPECS[name]
    split = spec.load_data(_table(name) if name in TABLES else None)
    gen = Generator().manual_seed(0)
    return replace(
        split,
        train=split.train.sample(TRAIN, gen),
        val=split.val.sample(HELD, gen),
        test=split.test.sample(HELD, gen),
    )
