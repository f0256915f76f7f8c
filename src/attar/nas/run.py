"""Architecture search on proxy sets: rows × seeds × networks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from attar.assess.score import most_frequent
from attar.condense.observers import Observer
from attar.core.device import device_of
from attar.core.files import write_text
from attar.core.lock import owned
from attar.core.signals import require_seconds
from attar.data import Split
from attar.data.load import Source
from attar.engine.pool import LOCAL, Engine, Where
from attar.infer.separate import require_separate
from attar.nas.cell import Job, Work, make_proxy, planned, train_one
from attar.nas.results import RESULT, Nas, Proxy, Trial
from attar.nas.spec import NasSpec
from attar.nets import network
from attar.select.budget import BALANCED, per_class_of, warn_if_skewed
from attar.study.cells import complete, intact, run_cells
from attar.study.grid import Progress, Seeded
from attar.study.progress import steps_of, write_jobs
from attar.study.results import versions
from attar.study.resume import OWN, Settings, of_methods, settle
from attar.study.runner import describe
from attar.study.settings import call_of
from attar.study.spec import FULL

AXES = ("depths", "widths", "norms", "activations", "pools")
GROWS = ("methods", "seeds", "baselines", "experts", *AXES, *OWN)  # what may differ between calls for one folder
LOADING = ("data", "test_data", "target", "resize", "scaling", "val", "test")  # fingerprints say what they hold


def nas(
    spec: NasSpec | str | Path | Mapping[str, Any],
    *,
    data: Source | Split | None = None,
    folder: str | Path = "nas",
    workers: int = 1,
    engine: Engine | Where = "local",
    device: str = "cpu",
    checkpoint_every: float | None = None,
    watch: Callable[[Progress], None] | None = None,
) -> Nas:
    """Rank networks by training them on proxy sets, compare with the full data, and write ``nas.json``.

    Finished trainings are not repeated, those on the full data included. With other methods, seeds or networks in the
    same folder, only what is missing is run.

    Args:
        spec: What to run: a ``NasSpec``, the path of a TOML file, or a mapping of its fields.
        data: Replaces the spec's data: anything that ``attar.load`` takes, or a ``Split``.
        folder: Folder for all results; give the same one to resume or extend.
        workers: Processes that work at the same time. With more than one, a script must be guarded by
            ``if __name__ == "__main__"``.
        engine: ``local``, or ``ray`` (an extra); or an ``attar.Engine``, which has the workers, too.
        device: Where to compute: cpu, cuda, mps.
        checkpoint_every: Seconds between checkpoints of a method that learns, as for ``attar.reduce``.
        watch: Called with a ``Progress`` for every finished part, including those of earlier calls.
    """
    wanted = NasSpec.of(spec)
    split = wanted.load_data(data).to(device_of(device))
    command = call_of("nas", spec if isinstance(spec, str | Path) else wanted, NasSpec(), data)
    return run_nas(
        wanted,
        split,
        folder,
        command=command,
        engine=Engine.of(engine, workers),
        checkpoint_every=checkpoint_every,
        watch=watch,
    )


def run_nas(
    spec: NasSpec,
    split: Split,
    folder: str | Path,
    *,
    command: str,
    engine: Engine = LOCAL,
    observers: Sequence[Observer] = (),
    checkpoint_every: float | None = None,
    watch: Callable[[Progress], None] | None = None,
) -> Nas:
    """Run on loaded data.

    Args:
        spec: What to run.
        split: The data.
        folder: Folder for all results.
        command: The command that repeats it, to be stored.
        engine: Where jobs run.
        observers: Called with the steps of methods that learn.
        checkpoint_every: Seconds between checkpoints, as for ``attar.reduce``.
        watch: Called with a ``Progress`` for every finished part.
    """
    if spec.fraction is not None:
        spec = replace(spec, per_class=per_class_of(split.train, None, spec.fraction), fraction=None)
    warn_if_skewed(split.train.hard.bincount(), BALANCED)
    for name in spec.networks:
        require_separate(network(name, split.spec))
    made_with = network(spec.network, split.spec).name
    work = Work(replace(spec, network=made_with), split, Path(folder), observers, require_seconds(checkpoint_every))
    steps = {name: steps_of(planned(work, name, seed=0)) for name in spec.study.names}
    with owned(folder):
        return _carry_out(work, steps, command, engine, watch)


def _carry_out(
    work: Work,
    steps: Mapping[str, int | None],
    command: str,
    engine: Engine,
    watch: Callable[[Progress], None] | None,
) -> Nas:
    """Run what is missing, and write the result of all searches in the folder; ``steps`` are those of each method."""
    spec = work.spec
    makings = [Seeded(name, seed) for name in spec.study.names for seed in spec.seeds]
    places, jobs = (work.folder / "proxies", work.folder / "trials"), _jobs(spec)
    settled = settle(
        work.folder,
        _shared(work),
        of_methods(spec.plain(), spec.study.names),
        None if complete(jobs, places[1]) else command,
    )
    write_jobs(work.folder, {making.key: steps[making.method] for making in makings})
    proxies = run_cells(
        make_proxy, work, makings, places[0], TypeAdapter(Proxy), line=lambda proxy: f"{proxy.size:,} examples",
        whole=lambda making: intact(work.coreset(making)), stage="proxy sets", engine=engine, watch=watch,
    )  # fmt: skip
    trials = run_cells(
        train_one, work, jobs, places[1], TypeAdapter(Trial), line=_line,
        stage="networks", engine=engine, watch=watch,
    )  # fmt: skip
    found = _gathered(work, settled, command, proxies, trials)
    found.save(work.folder / RESULT)
    write_text(work.folder / "nas.csv", found.csv())
    return found


def _jobs(spec: NasSpec) -> list[Job]:
    """Rows × seeds × networks; the full data has one training of each network, with the first seed."""
    seeds = {row: (0,) if row == FULL else tuple(spec.seeds) for row in spec.rows}
    return [Job(row, seed, name) for row in spec.rows for seed in seeds[row] for name in spec.networks]


def _line(trial: Trial) -> str:
    return trial.problem or f"{trial.validation:.1%} on validation"


def _gathered(
    work: Work,
    settled: Settings,
    command: str,
    proxies: Mapping[str, Proxy],
    trials: Mapping[str, Trial],
) -> Nas:
    """Every search in the folder that covers all networks asked for: those of this call first, the full data last."""
    networks, spec = work.spec.networks, work.spec
    known = {(trial.row, trial.seed) for trial in trials.values()}
    whole = [pair for pair in known if all(Job(*pair, name).key in trials for name in networks)]
    rows = [*spec.rows[:-1], *sorted({row for row, _ in known} - {*spec.rows}), FULL]
    pairs = sorted(whole, key=lambda pair: (rows.index(pair[0]), pair[1]))
    config = spec.plain() | {"methods": [row for row in dict.fromkeys(row for row, _ in pairs) if row != FULL]}
    config |= settled.tables
    kept = [trials[Job(*pair, name).key] for pair in pairs for name in networks]
    sets = [proxy for proxy in proxies.values() if (proxy.method, proxy.seed) in pairs]
    told, about = " && ".join(settled.commands) or command, describe(work.split)
    share = float((work.split.test.hard == most_frequent(work.split.train)).double().mean())
    return Nas(told, config, about, networks, sets, kept, majority=share, folder=work.folder)


def _shared(work: Work) -> dict[str, Any]:
    """The settings of all cells of a folder."""
    plain = {name: value for name, value in work.spec.plain().items() if name not in (*GROWS, *LOADING)}
    return {"kind": "nas", **plain, "data": describe(work.split), "attar": versions()["attar"]}
