"""The tables of the papers on contrastive divergence and on LCMat, on the papers' data, sized for two cores.

Every recipe in ``recipes/papers`` is a study. The coresets of CIFAR-10 with ten images per class are then judged on
corrupted and attacked images and train other networks; pseudo-coresets are also learnt with networks of other sizes;
and condensers learn one image per class with the papers' network, judged by both protocols. The environment variable
``PARTS``, separated by commas, restricts a call to some of the ``PARTS`` below; ``WORKERS`` is the number of processes.
An interrupted benchmark resumes.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from torch import Generator

import attar
from attar.assess.attack import robust_accuracy
from attar.assess.corruption import corruption_table
from attar.assess.transfer import transfer
from attar.core.cost import measure
from attar.core.files import read_json, write_json
from attar.coreset import Coreset
from attar.data import Split
from attar.engine import Engine, keep_freed_memory
from attar.engine.pool import run_all
from attar.experts import SMALL, experts
from attar.nets.train import Training
from attar.study import Study, StudySpec
from attar.study.cell import evaluation_seed
from attar.study.grid import grid
from attar.study.prepare import prepare
from attar.study.protocol import HONEST
from attar.study.results import Run, machine, versions
from attar.study.runner import carry_out as run_jobs
from benchmarks import RESULTS, WORK, carry_out, publish, recipe

NAME = "papers"
WORKERS = int(os.environ.get("WORKERS", "2"))
STUDIES = ("mnist", "fashion-mnist", "cifar10", "cifar10-ablation", "cifar10-selection", "cifar10-rho")
PSEUDO = ("uniform", "bpc-rkl", "bpc-w", "bpc-fkl", "bpc-cd", "vbpc")
IMAGES = 500  #: test images that are corrupted, and attacked
CORRUPTIONS = (
    "gaussian_blur", "gaussian_noise", "jpeg_compression", "snow", "impulse_noise",
    "zoom_blur", "pixelate", "speckle_noise", "defocus_blur", "motion_blur",
)  # fmt: skip
SEVERITY = 3
OTHERS, FEWER = ("lenet", "alexnet"), Training(steps=100, batch=100)  # Table 4, and its training
SIZES = ("convnet-d3w8", "convnet-d3w32", "convnet-d4w16")  # Table 5, beside the network of the recipe
Value = TypeVar("Value")
PROTOCOL, EXPERTS = "protocols", 3


def main() -> list[Path]:
    """Do what is not done yet and was asked for; write the result files."""
    keep_freed_memory()
    asked = [name for name in os.environ.get("PARTS", "").split(",") if name]
    return [path for name, part in PARTS.items() if not asked or name in asked for path in part()]


def _study(name: str) -> list[Path]:
    return publish(carry_out(recipe(f"{NAME}/{name}"), f"{NAME}/{name}", workers=WORKERS), f"{NAME}/{name}")


def _sizes() -> list[Path]:
    """Table 5: pseudo-coresets that were learnt with networks of other sizes."""
    spec = replace(_some(recipe(f"{NAME}/cifar10"), PSEUDO[1:]), per_class=(1,), baselines=False)
    written = list[Path]()
    for network in SIZES:
        study = carry_out(replace(spec, network=network), f"{NAME}/{network}", workers=WORKERS)
        written += publish(study, f"{NAME}/{network}")
    return written


def _some(spec: StudySpec, names: Sequence[str]) -> StudySpec:
    """The study of some of its methods."""

    def only(settings: Mapping[str, Value]) -> dict[str, Value]:
        return {name: own for name, own in settings.items() if name in names}

    return replace(
        spec, methods=names, options=only(spec.options), descent=only(spec.descent), variants=only(spec.variants)
    )


def _robustness() -> list[Path]:
    """Tables 2, 3 and 4: corrupted images, attacked images, and other networks."""
    work = WORK / NAME / "cifar10"
    runs = [run for run in Study.load(work / "study.json").runs if run.method in PSEUDO and run.per_class == 10]
    split = recipe(f"{NAME}/cifar10").load_data()
    found = [answer for _, answer in run_all(partial(_answered, work), split, runs, Engine(workers=WORKERS))]
    path = RESULTS / NAME / "robustness.json"
    about = {
        "command": f"python -m benchmarks {NAME}",
        "images": IMAGES,
        "severity": SEVERITY,
        "transfer_training": asdict(FEWER),
        "versions": versions(),
        "machine": machine(),
    }
    write_json(path, about | {"runs": found})
    return [path]


def _answered(work: Path, split: Split, run: Run) -> dict[str, Any]:
    """The answers for one coreset, from its file if there is one."""
    path = work / "answers" / f"{run.method}-{run.per_class}-{run.seed}.json"
    if not path.exists():
        coreset, seed = Coreset.load(work / str(run.coreset)), evaluation_seed(run.seed)
        with measure() as cost:
            posterior = attar.infer(coreset, draws=2, seed=seed)
            some = split.test.sample(IMAGES, Generator().manual_seed(run.seed))
            corrupted = corruption_table(posterior, some, names=CORRUPTIONS, severities=(SEVERITY,), seed=run.seed)
            attacked = robust_accuracy(posterior, some, steps=20, seed=run.seed)
            training = replace(coreset.training, steps=FEWER.steps, batch=FEWER.batch)
            moved = transfer(coreset, split, OTHERS, seeds=(seed,), training=training)
        answer = {
            "method": run.method,
            "seed": run.seed,
            "corruption": [asdict(each) for each in corrupted],
            "attack": asdict(attacked),
            "transfer": [asdict(each) for each in moved],
            "cpu": cost.cpu,
            "memory": cost.memory,
        }
        write_json(path, answer)
        sys.stderr.write(f"{path.stem}\n")
    return dict(read_json(path))


def _protocols() -> list[Path]:
    """The same coresets under both protocols: those of condensers with one image per class and the papers' network."""
    spec = recipe(f"{NAME}/{PROTOCOL}")
    split = spec.load_data()
    store = experts(split, spec.network, replace(SMALL, trajectories=EXPERTS), workers=WORKERS)
    written = publish(
        carry_out(replace(spec, experts=store.folder), f"{NAME}/{PROTOCOL}", workers=WORKERS, split=split),
        f"{NAME}/{PROTOCOL}",
    )
    honest, work = replace(spec, protocol=HONEST, draws=1, given=()), WORK / NAME
    jobs = grid(honest)
    given = {job: Coreset.load(work / PROTOCOL / job.coreset) for job in jobs}
    plans = prepare(honest, split, work / f"{PROTOCOL}-{HONEST}", jobs, given=given)
    study = run_jobs(plans, jobs, f"python -m benchmarks {NAME}", Engine(workers=WORKERS))
    return written + publish(study, f"{NAME}/{PROTOCOL}-{HONEST}")


PARTS: dict[str, Callable[[], list[Path]]] = {
    **{name: partial(_study, name) for name in STUDIES},
    "robustness": _robustness,
    "sizes": _sizes,
    PROTOCOL: _protocols,
}
