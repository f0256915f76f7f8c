"""What a study compares, and under which conditions."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from attar.condense.observers import Observer
from attar.core import registry
from attar.core.errors import AttarError
from attar.data import Split
from attar.nets.train import Training
from attar.study.folder import Job

BASELINES = ("uniform", "herding")  # a random subset and the candidates for the best selection; "full" comes beside


@dataclass(frozen=True)
class Setting:
    """What all runs of a study share, so that they may be compared."""

    split: Split
    folder: Path  #: where runs, coresets, logs, films and checkpoints go
    network: str
    training: Training
    draws: int
    sampler: str | None = None  #: how posteriors are inferred; as each method means it, if not set
    sampler_options: Mapping[str, Any] = field(default_factory=dict)
    evaluations: int = 1  #: posteriors for each coreset, each from its own seed
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  #: hyper-parameters by method
    descent: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  #: the driver's, by method
    variants: Mapping[str, str] = field(default_factory=dict)  #: registered method by the name it has in this study
    experts: str | None = None  #: folder of experts, for methods that need them
    observers: Sequence[Observer] = ()

    def method(self, name: str) -> str:
        """The registered method behind a name of this study."""
        return self.variants.get(name, name)

    def watched(self, observer: Observer) -> Setting:
        """The same, with an observer of the steps of methods that learn."""
        return replace(self, observers=(*self.observers, observer))

    def config(self) -> dict[str, Any]:
        """What decides the numbers, as plain values."""
        return {
            "network": self.network,
            "training": TypeAdapter(Training).dump_python(self.training),
            "draws": self.draws,
            "sampler": self.sampler,
            "sampler_options": dict(self.sampler_options),
            "evaluations": self.evaluations,
            "variants": dict(self.variants),
            "options": {name: dict(values) for name, values in self.options.items()},
            "descent": {name: dict(values) for name, values in self.descent.items()},
        }


def grid(
    methods: Sequence[str],
    per_class: Sequence[int],
    seeds: Sequence[int],
    baselines: bool = True,
    variants: Mapping[str, str] | None = None,
) -> list[Job]:
    """Methods × sizes × seeds, with a random subset, herding and the full data beside them if asked."""
    names = list(dict.fromkeys([*(BASELINES if baselines else ()), *methods]))
    for name in names:
        registry.find((variants or {}).get(name, name), *registry.REDUCERS)
        if not re.fullmatch(r"(?!\.)[\w.+=-]+", name):
            raise AttarError(
                f"A name in a study is made of letters, digits and . + = - _ and starts with no dot, got {name!r}: "
                "rename it."
            )
    jobs = [Job(name, size, seed) for name in names for size in per_class for seed in seeds]
    return jobs + [Job("full", None, seed) for seed in seeds if baselines]
