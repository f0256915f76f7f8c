"""What a study says when its rows are compared: differences by seed, and sizes that keep the accuracy."""

from __future__ import annotations

from statistics import mean

from attar.assess.distance import distillation_ratio
from attar.assess.statistics import FEWEST, Paired
from attar.core.errors import AttarError, unknown
from attar.study.results import Run, Study, by_seed
from attar.study.spec import BASELINES, CONVERGED, FULL

RANDOM = BASELINES[0]


def paired(ours: list[Run], theirs: list[Run]) -> Paired | None:
    """The difference in test accuracy of two rows of a study, in points, seed by seed."""
    return Paired.of(*(by_seed(runs, lambda run: 100 * run.test.accuracy) for runs in (ours, theirs)))


def reference(study: Study) -> str | None:
    """The name of the full data that others are measured against: converged if it was run."""
    there = {method for method, size in study.groups() if size is None}
    return next((name for name in (CONVERGED, FULL) if name in there), None)


def differences(study: Study) -> list[str]:
    """Every method against a random subset of its size, in words; empty if there is none.

    With too few seeds for an order it says so once, instead of a line for every row.
    """
    groups = study.groups()
    found = {
        (method, size): gap
        for (method, size), runs in groups.items()
        if method != RANDOM and size is not None and (RANDOM, size) in groups
        if (gap := paired(runs, groups[RANDOM, size]))
    }
    told = {key: gap for key, gap in found.items() if gap.order != "too few seeds"}
    lines = [f"{method}, {size} per class, against {RANDOM}: {gap}" for (method, size), gap in told.items()]
    if found and not told:
        lines.append(f"too few seeds to say which row is above another: give {FEWEST}, such as --seeds 0,1,2,3,4")
    return lines


def distillation_size(study: Study, method: str, percent: float = 95.0) -> int | None:
    """The smallest size (examples per class) at which a method keeps ``percent`` of the full data's accuracy.

    The full data is that trained to convergence if it was run, else that with the same training budget. Compares means
    of test accuracy over seeds, at the sizes that were run, without interpolation. None if no size reaches it.
    """
    if not percent > 0:
        raise AttarError(f"percent must be positive, got {percent}.")
    means = {key: mean(run.test.accuracy for run in runs) for key, runs in study.groups().items()}
    full = reference(study)
    if full is None:
        raise AttarError("The study has no run on the full data to compare with: run it with baselines.")
    sizes = {size: value for (name, size), value in means.items() if name == method and size is not None}
    if not sizes:
        raise unknown("method of this study", method, {name for name, size in means if size is not None})
    return min(
        (s for s, a in sizes.items() if distillation_ratio(a, means[full, None]) >= percent * (1 - 1e-12)), default=None
    )


def distillation_sizes(study: Study, percent: float = 95.0) -> str:
    """One sentence: the ``percent`` % distillation size of every method; empty without a run on the full data."""
    groups = study.groups()
    methods = list(dict.fromkeys(method for method, size in groups if size is not None))
    full = reference(study)
    if not methods or full is None:
        return ""
    found = {method: distillation_size(study, method, percent) for method in methods}
    reached = [f"{method} {size}" for method, size in found.items() if size is not None]
    missed = [method for method, size in found.items() if size is None]
    words = [f"{', '.join(reached)} per class"] if reached else []
    words += [f"not reached by {', '.join(missed)}"] if missed else []
    about = f"{percent:g} % distillation size (smallest size with {percent:g} % of the accuracy of {full})"
    return f"{about}: {'; '.join(words)}"


def how_long(runs: list[Run]) -> str:
    """How the full data was trained to convergence: the steps chosen on validation for the seeds of a row."""
    steps = sorted({int(run.notes["steps"]) for run in runs})
    taken = f"{steps[0]:,} steps" if len(steps) == 1 else f"{steps[0]:,} to {steps[-1]:,} steps"
    limit = "; longer ones might still gain" if any(run.notes.get("rising") for run in runs) else ""
    return f"all training data for {taken}, chosen on validation (time includes the choice){limit}"
