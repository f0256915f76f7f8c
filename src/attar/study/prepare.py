"""Every plan and evaluation of a study, decided before anything runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from attar.condense.observers import Observer
from attar.core import registry
from attar.coreset import Coreset
from attar.data import Split
from attar.infer.run import require_room
from attar.infer.separate import require_separate
from attar.nets import network as build_network
from attar.plan import needs_of, plan
from attar.study.cell import Work
from attar.study.grid import Job
from attar.study.protocol import Evaluation, evaluation, find
from attar.study.spec import StudySpec


def prepare(
    spec: StudySpec,
    split: Split,
    folder: str | Path,
    jobs: Sequence[Job],
    *,
    given: Mapping[Job, Coreset] | None = None,
    observers: Sequence[Observer] = (),
) -> Work:
    """Plan every method at every size once, so that errors in names and ranges are found before anything runs."""
    protocol = find(spec.protocol)
    protocol.check(split.spec)
    net = build_network(spec.network or protocol.network, split.spec)
    require_separate(net)
    require_room(spec.draws, net)
    made = given or {}
    pairs = dict.fromkeys((job.method, job.per_class) for job in jobs if job not in made)
    plans = {
        (name, size): plan(
            split,
            spec.method(name),
            per_class=size,
            budget=spec.budget,
            network=net,
            options=spec.options.get(name),
            descent=_descent(spec, name),
            training=spec.training,
            experts=spec.experts if needs_of(spec.method(name)).experts else None,
            base=spec.base if needs_of(spec.method(name)).base else None,
        )
        for name, size in pairs
        if size is not None
    }
    filled = replace(spec, network=net.name)
    rules = rules_of(filled, split, dict.fromkeys((job.method, job.per_class) for job in jobs))
    return Work(filled, split, Path(folder), plans, made, observers, rules)


def rules_of(
    spec: StudySpec, split: Split, pairs: Iterable[tuple[str, int | None]]
) -> dict[tuple[str, int | None], Evaluation]:
    """The evaluation of every method and size, where the protocol has a rule of its own for each."""
    found = {}
    for name, size in pairs:
        method = None if size is None else registry.build(spec.method(name), spec.options.get(name, {}))
        if (rule := find(spec.protocol).rule(method)) is not None:
            start = {"init": value} if (value := spec.descent.get(name, {}).get("init")) else {}
            strategy = "none" if method is None else registry.options_of(method).get("strategy", "none")
            count = len(split.train) if size is None else size * split.train.classes
            found[name, size] = evaluation(rule, spec.own | start, strategy, split.spec, count, size)
    return found


def _descent(spec: StudySpec, name: str) -> Mapping[str, Any] | None:
    """The optimiser settings that are given for a method, with the start of its examples that the protocol has."""
    given, method = spec.descent.get(name), registry.build(spec.method(name), spec.options.get(name, {}))
    rule = find(spec.protocol).rule(method)
    return given if rule is None or method.descent is None else {"init": rule.init, **(given or {})}
