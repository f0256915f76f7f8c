"""The cells of a search: proxy sets, and networks trained on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from attar.assess.score import evaluate
from attar.condense.observers import Observer, log
from attar.core.cost import measure
from attar.core.errors import AttarError
from attar.core.streams import seed_of
from attar.coreset import Coreset
from attar.data import Split
from attar.infer import Draws, infer
from attar.infer.diagnose import together
from attar.nas.results import Proxy, Trial
from attar.nas.spec import EARLY, NasSpec
from attar.nets import Network, network
from attar.plan import Plan, needs_of, plan
from attar.study.cells import reduced
from attar.study.grid import Seeded
from attar.study.spec import FULL


@dataclass(frozen=True)
class Job:
    """A network to be trained on one set."""

    row: str
    seed: int
    network: str

    @property
    def key(self) -> str:
        """A name that is unique in the grid and safe as a file name."""
        return f"{self.row}-{self.seed}-{self.network}"


@dataclass(frozen=True)
class Work:
    """What every cell needs; each worker gets it once."""

    spec: NasSpec  #: with the name of its network filled in
    split: Split
    folder: Path
    observers: Sequence[Observer] = ()
    checkpoint_every: float | None = None  #: seconds, as for ``reduce``

    def coreset(self, making: Seeded) -> Path:
        """The file of a proxy set."""
        return self.folder / "coresets" / f"{making.key}.safetensors"


def planned(work: Work, method: str, seed: int) -> Plan:
    """The reduction that makes a proxy set."""
    spec, name = work.spec, work.spec.study.method(method)
    return plan(
        work.split,
        name,
        per_class=spec.per_class,
        seed=seed,
        network=spec.network,
        options=spec.options.get(method),
        descent=spec.descent.get(method),
        training=spec.training,
        experts=spec.experts if needs_of(name).experts else None,
    )


def make_proxy(work: Work, job: Seeded) -> Proxy:
    """Make one proxy set; an interrupted reduction resumes."""
    checkpoint = work.folder / "checkpoints" / f"{job.key}.safetensors"
    logged: Observer = partial(log, path=work.folder / "logs" / f"{job.key}.jsonl")
    decided = planned(work, job.method, job.seed)
    made = reduced(decided, [logged, *work.observers], checkpoint, work.checkpoint_every)
    made.save(work.coreset(job))
    checkpoint.unlink(missing_ok=True)
    return Proxy(job.method, job.seed, len(made), made.recipe.cost)


def train_one(work: Work, job: Job) -> Trial:
    """Train one network and score it on validation and test data; a training that diverges is reported, not raised."""
    net, made = network(job.network, work.split.spec), _proxy(work, job)
    try:
        with measure() as cost:
            posterior = _posterior(work, job, net, made)
        validation, test = evaluate(posterior, work.split.val).accuracy, evaluate(posterior, work.split.test)
    except AttarError as error:
        return Trial(job.row, job.seed, job.network, net.size, cost, problem=str(error))
    return Trial(
        job.row,
        job.seed,
        job.network,
        net.size,
        cost,
        validation,
        test.accuracy,
        balanced=test.balanced,
        worst=test.worst,
        chains=together([posterior.notes]),
    )


def _proxy(work: Work, job: Job) -> Coreset | None:
    """The proxy set of a job; None if it trains on the full data."""
    if job.row in (FULL, EARLY):
        return None
    return Coreset.load(work.coreset(Seeded(job.row, job.seed)), force=True).to(work.split.train.device)


def _posterior(work: Work, job: Job, net: Network, proxy: Coreset | None) -> Draws:
    spec, seed = work.spec, seed_of("search", job.seed)
    if proxy is None:
        steps = spec.full_steps if job.row == FULL else spec.training.steps
        budget = replace(spec.training, steps=steps)
        return infer(work.split.train, "ensemble", draws=1, seed=seed, network=net, training=budget)
    return infer(proxy, spec.sampler, draws=1, seed=seed, network=net, options=spec.sampler_options)
