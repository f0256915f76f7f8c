r"""What to expect of every candidate on new data, and which one to take for a goal.

The expected gain of a candidate m, a method with its settings, over a random subset is a mean over committed problems p
of the same kind, weighted by likeness:

.. math:: \hat g_m = \frac{\sum_p w_p\, g_m(p)}{\sum_p w_p}, \qquad w_p = \exp(-d_p), \qquad
    d_p = \sum_{q} \Big|\log_{10} \frac{q}{q_p}\Big|

over the quantities q: training examples, classes and examples per class. So ten times as many of anything is a distance
of one. Data of another kind does not count: it is read by other networks, on which methods have another order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import exp, inf, log, log10, sqrt
from typing import NamedTuple

from attar.core import registry
from attar.recommend.evidence import About, Evidence, Problem, Score

RANDOM = "uniform"
FAR = 1.5  #: data whose nearest problem is farther is like nothing that was measured
MARGIN = 2.0  #: points of accuracy that the goal speed gives away

#: What the method for a goal has.
GOALS = {
    "accuracy": "the highest expected accuracy",
    "calibration": "the lowest expected negative log-likelihood",
    "privacy": "the highest expected accuracy of those whose examples are no rows of the data",
    "speed": f"the lowest cost of those within {MARGIN:.0f} points of the highest expected accuracy",
}


class Figure(NamedTuple):
    """A weighted mean over problems, the standard deviation between them, and their lower quartile."""

    mean: float
    spread: float
    low: float  #: what three in four problems exceed


class Expectation(NamedTuple):
    """What to expect of a candidate, a method with its settings; accuracies are in points."""

    name: str
    gain: Figure  #: accuracy, less that of a random subset
    full: Figure  #: accuracy, less that of the full data with as many training steps
    nll: Figure  #: negative log-likelihood of a random subset, less that of the candidate
    ece: Figure  #: expected calibration error of a random subset, less that of the candidate
    cpu: float  #: seconds that a coreset took, as a geometric mean


def distance(one: About, other: About) -> float:
    """How far two problems are from each other; infinite for two kinds of data."""
    if one.kind != other.kind:
        return inf
    return sum(abs(log10(a / b)) for a, b in zip(one[1:], other[1:], strict=True))


def nearest(about: About, problems: Sequence[Problem]) -> Problem | None:
    """The problem that is most like this one; None if all are of another kind."""
    same = [problem for problem in problems if problem.about.kind == about.kind]
    return min(same, key=lambda problem: distance(about, problem.about)) if same else None


def is_known(about: About, problems: Sequence[Problem]) -> bool:
    """Whether something like this was measured."""
    near = nearest(about, problems)
    return near is not None and distance(about, near.about) <= FAR


def ranking(about: About, known: Evidence, goal: str) -> list[Expectation]:
    """All candidates that serve a goal, best first: those that were run on every problem that counts.

    For data that is like nothing measured, problems of all kinds count alike, and what counts is not the mean but the
    gain that three in four of them exceed.
    """
    near = is_known(about, known.problems)
    problems = [each for each in known.problems if not near or each.about.kind == about.kind]
    weights = [exp(-distance(about, each.about)) if near else 1.0 for each in problems]
    names = [name for name in sorted(known.settings) if all(name in each.scores for each in problems)]
    found = [_expectation(name, problems, weights) for name in names]

    def worth(each: Expectation) -> float:
        figure = each.nll if goal == "calibration" else each.gain
        return figure.mean if near else figure.low

    if goal == "privacy":
        found = [each for each in found if synthetic(known.settings[each.name].method)]
    order = sorted(found, key=worth, reverse=True)
    if goal == "speed":
        close = [each for each in order if worth(each) >= worth(order[0]) - MARGIN]
        order = sorted(close, key=lambda each: each.cpu) + order[len(close) :]
    return order


def synthetic(method: str) -> bool:
    """Whether the examples of a method are learnt, and so no rows of the data."""
    return registry.find(method, *registry.REDUCERS).learns.startswith("pixels")


def _expectation(name: str, problems: Sequence[Problem], weights: Sequence[float]) -> Expectation:
    def figure(value: Callable[[Score, Problem], float]) -> Figure:
        values = [value(problem.scores[name], problem) for problem in problems]
        centre = _mean(values, weights)
        spread = sqrt(_mean([(each - centre) ** 2 for each in values], weights))
        return Figure(centre, spread, sorted(values)[len(values) // 4])

    return Expectation(
        name,
        figure(lambda score, problem: 100 * (score.accuracy - problem.scores[RANDOM].accuracy)),
        figure(lambda score, problem: 100 * (score.accuracy - problem.full.accuracy)),
        figure(lambda score, problem: problem.scores[RANDOM].nll - score.nll),
        figure(lambda score, problem: problem.scores[RANDOM].ece - score.ece),
        exp(figure(lambda score, problem: log(max(score.cpu, 1e-3))).mean),
    )


def _mean(values: Sequence[float], weights: Sequence[float]) -> float:
    return sum(w * v for w, v in zip(weights, values, strict=True)) / sum(weights)
