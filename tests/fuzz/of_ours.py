"""Files that Attar writes and reads again."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

import attar
from attar import AttarError, Training
from attar.assess.converged import Store
from attar.cli import main
from attar.cli.options import read_recipe
from attar.condense.film import Film
from attar.condense.observers import film, log
from attar.continual.spec import ContinualSpec
from attar.coreset import Coreset
from attar.experts import Schedule, Trajectories, trajectory
from attar.infer import Draws
from attar.nas.spec import NasSpec
from attar.nets import network
from attar.report import report
from attar.select.keep import Kept
from attar.study.cross import cross
from attar.study.results import Study
from attar.study.spec import StudySpec
from tests.fuzz import mutate
from tests.fuzz.pages import require_no_formula, require_sound
from tests.fuzz.target import TENSORS, TEXT, TREE, Target
from tests.known import Stop, gaussians, images, stop_at
from tests.report.applications import search, stages
from tests.report.assessments import whole
from tests.report.studies import making, study

QUICK = Training(batch=16, lr=0.05, weight_decay=0, schedule="constant", steps=4)


def _coreset(folder: Path, kind: str = "images") -> None:
    if kind == "texts":
        (folder / "a.csv").write_text(
            "\n".join(["text,label", *(f"the word {k} of {k % 5},{'abc'[k % 3]}" for k in range(40))])
        )
        made = attar.reduce(attar.load(folder / "a.csv"), "uniform", per_class=1, training=QUICK)
    elif kind == "images":
        made = attar.reduce(images(8), "dm", per_class=4, network="mlp-d1w4", training=QUICK, descent={"steps": 2})
    else:
        made = attar.reduce(gaussians(8), "craig", per_class=2, network="mlp-d1w4", training=QUICK)
    made.save(folder / "a.safetensors")


def _loaded(folder: Path) -> object:
    found = Coreset.load(folder / "a.safetensors")
    return repr(found), found.data.fingerprint, found.training, found.rows


def _run(*words: object) -> str:
    """What a command prints; it must not control a terminal, and it must end with 0, or 2 and a sentence."""
    said = io.StringIO()
    code: object = 0
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        try:
            main([str(word) for word in words])
        except SystemExit as stop:
            code = stop.code
    text = said.getvalue()
    assert code in (0, None, 2), f"exit code {code}: {text}"
    strange = [c for c in text if not (c.isprintable() or c == "\n")]
    assert not strange, f"control characters {strange[:5]!r} in a terminal"
    if code == 2:
        raise AttarError(" ".join(text.split("\n")))
    return text


def _show(folder: Path) -> object:
    return _run("show", folder / "a.safetensors")


def _check(folder: Path) -> object:
    return _run("check", folder / "a.safetensors")


def _export(folder: Path) -> object:
    """No cell of a table may begin as a formula, and no file may be written elsewhere."""
    made = Coreset.load(folder / "a.safetensors")
    made.export(folder / "out.csv")
    require_no_formula((folder / "out.csv").read_text(encoding="utf-8"))
    return made.export(folder / "images", "folder") if made.data.x.ndim == 4 else None


def _posterior(folder: Path, sampler: str = "ensemble") -> None:
    posterior = attar.infer(gaussians(8), sampler, draws=2, network="mlp-d1w4", training=QUICK)
    posterior.save(folder / "a.safetensors")


def _predicted(folder: Path) -> object:
    posterior = Draws.load(folder / "a.safetensors")
    return posterior.predict_proba(np.zeros((2, *posterior.network.shape), np.float32))


def _condensed(folder: Path, stop: int | None = None) -> Coreset:
    """A condensation that goes on from a checkpoint, if there is one, with a film and a log."""
    watching = [partial(film, path=folder / "film.safetensors"), partial(log, path=folder / "a.jsonl")]
    return attar.reduce(
        gaussians(8),
        "dm",
        per_class=1,
        network="mlp-d1w4",
        training=QUICK,
        descent={"steps": 4},
        checkpoint=folder / "a.checkpoint",
        every=1,
        observers=watching if stop is None else [*watching, partial(stop_at, stop)],
    )


def _checkpoint(folder: Path) -> None:
    with contextlib.suppress(Stop):
        _condensed(folder, 3)


def _experts(folder: Path) -> object:
    return _vectors(attar.experts(gaussians(8), "mlp-d1w4", Schedule(2, 2, QUICK), folder=folder))


def _opened(folder: Path) -> object:
    return _vectors(Trajectories.open(folder))


def _vectors(found: Trajectories) -> object:
    return [found.vector(index, epoch) for index in range(min(4, len(found))) for epoch in found.times[:9]]


def _unfinished(folder: Path) -> None:
    """A store whose only trajectory is not finished."""
    real: Any = trajectory.write_expert

    def stop(*arguments: object) -> None:
        raise Stop

    trajectory.write_expert = stop  # type: ignore[assignment]
    try:
        with contextlib.suppress(Stop):
            _experts(folder)
    finally:
        trajectory.write_expert = real


def _view(folder: Path) -> object:
    return Kept(folder / "a.safetensors", torch.device("cpu")).once("features", lambda: torch.rand(8, 3))


def _intact(read: Callable[[Path], object], folder: Path) -> object:
    """What is read; a file that was found to be damaged, and kept under another name, counts as refused."""
    found = read(folder)
    if aside := list(folder.glob("*.unreadable-*")):
        raise AttarError(f"{aside[0].name} is damaged.")
    return found


def _reference(folder: Path) -> object:
    data = gaussians(8)
    return replace(Store.of(data, network("mlp-d1w4", data.spec), QUICK), folder=folder).network(0, 0, 4)


def _study(folder: Path) -> None:
    study(folder, methods=("uniform", "dm", "full"), seeds=2).save(folder / "study.json")
    making(folder, "dm-2-0", torch.rand(3, 1, 6, 6), steps=20)
    whole().save(folder / "answers.json")


def _page(folder: Path, answers: bool = False) -> object:
    page = report(folder, folder / "page.html", answers=[folder / "answers.json"] if answers else ())
    require_sound(page.read_text(encoding="utf-8"))
    return page


def _applied(folder: Path) -> None:
    (folder / "a").mkdir()
    (folder / "b").mkdir()
    stages(2, 1).save(folder / "a" / "continual.json")
    search(4).save(folder / "b" / "nas.json")


def _application(folder: Path) -> object:
    return [_page(folder / "a"), _page(folder / "b")]


def _compared(folder: Path) -> Study:
    data = images(8)
    split = attar.Split(data[:12], data[12:18], data[18:])
    spec = StudySpec(
        methods="dm", per_class=[1], seeds=[0], network="mlp-d1w4", training=QUICK, draws=1, converged=False
    ).stepped(2)
    made = attar.compare(spec, data=split, folder=folder)
    cross(made, split, folder, ["linear"])
    return made


def _study_recipe(folder: Path) -> None:
    (folder / "a.toml").write_text(
        'data = "digits"\nmethods = ["dm", "uniform"]\nper_class = [1, 2]\nseeds = [0]\ndraws = 3\nval = 0.1\n'
        "[training]\nsteps = 30\nlr = 0.1\n[options.dm]\nbatch = 32\n[descent.dm]\nsteps = 10\n"
        '[variants]\n"dm-x" = "dm"\n'
    )


def _recipe(folder: Path) -> None:
    (folder / "a.toml").write_text(
        'method = "dm"\nper_class = 1\nseed = 3\n[options]\nbatch = 32\n[descent]\nsteps = 2\n[training]\nsteps = 3\n'
    )


def _stages_recipe(folder: Path) -> None:
    (folder / "a.toml").write_text('data = ["digits"]\nmethods = ["dm"]\nstages = 5\nper_class = 2\nseeds = [0]\n')


def _search_recipe(folder: Path) -> None:
    (folder / "a.toml").write_text(
        'data = "digits"\nmethods = ["dm"]\nper_class = 2\nwidths = [4]\n[training]\nsteps = 3\n'
    )


def _read(read: Callable[[Path], object], folder: Path) -> object:
    return read(folder / "a.toml")


ONE = ["a.safetensors"]
TARGETS = {
    "coreset": Target(_coreset, _loaded, ONE, TENSORS, 8, sealed=True),
    "coreset-vectors": Target(partial(_coreset, kind="vectors"), _loaded, ONE, TENSORS, sealed=True),
    "coreset-texts": Target(partial(_coreset, kind="texts"), _loaded, ONE, TENSORS, sealed=True),
    "coreset-as-data": Target(_coreset, lambda folder: attar.load(folder / "a.safetensors"), ONE, TENSORS, sealed=True),
    "coreset-cost": Target(_coreset, _loaded, ["*.cost"], TREE, 1),
    "show": Target(_coreset, _show, ONE, TENSORS, 2, sealed=True),
    "show-texts": Target(partial(_coreset, kind="texts"), _show, ONE, TENSORS, 2, sealed=True),
    "check": Target(_coreset, _check, ONE, TENSORS, 2, sealed=True),
    "export": Target(_coreset, _export, ONE, TENSORS, 2, sealed=True),
    "posterior": Target(_posterior, _predicted, ONE, TENSORS, sealed=True),
    "posterior-heads": Target(partial(_posterior, sampler="last-layer-vi"), _predicted, ONE, TENSORS, sealed=True),
    "checkpoint": Target(_checkpoint, partial(_intact, _condensed), ["a.checkpoint"], TENSORS, sealed=True),
    "film": Target(
        _checkpoint, lambda folder: Film.load(folder / "film.safetensors"), ["film.safetensors"], TENSORS, sealed=True
    ),
    "film-resumed": Target(_checkpoint, _condensed, ["film.safetensors"], TENSORS),
    "log-resumed": Target(_checkpoint, _condensed, ["a.jsonl"], [mutate.json_lines, *TEXT], 2),
    "experts": Target(_experts, _opened, ["*.safetensors"], TENSORS, sealed=True),
    "experts-manifest": Target(_experts, _opened, ["manifest.json"], TREE),
    "experts-resumed": Target(_unfinished, _experts, ["*.checkpoint"], TENSORS),
    "experts-again": Target(_experts, _experts, ["*.safetensors"], TENSORS, 2),
    "view": Target(_view, partial(_intact, _view), ONE, TENSORS, 1, sealed=True),
    "reference": Target(_reference, _reference, ["*.safetensors"], TENSORS, 1),
    "study": Target(_study, _page, ["study.json"], TREE, 4),
    "study-coreset": Target(_study, _page, ["dm-2-0.safetensors"], TENSORS, 1),
    "study-film": Target(_study, _page, ["films/*.safetensors"], TENSORS, 1),
    "study-log": Target(_study, _page, ["logs/*.jsonl"], [mutate.json_lines, mutate.json_lines, *TEXT], 2),
    "answers": Target(_study, partial(_page, answers=True), ["answers.json"], TREE, 2),
    "applications": Target(_applied, _application, ["*/*.json"], TREE, 2),
    "compared": Target(_compared, _compared, ["config.json", "runs/*.json", "transfer.json"], TREE),
    "study-recipe": Target(_study_recipe, partial(_read, StudySpec.read), ["a.toml"], TEXT),
    "recipe": Target(_recipe, partial(_read, read_recipe), ["a.toml"], TEXT),
    "continual-recipe": Target(_stages_recipe, partial(_read, ContinualSpec.of), ["a.toml"], TEXT, 2),
    "nas-recipe": Target(_search_recipe, partial(_read, NasSpec.of), ["a.toml"], TEXT, 2),
}
