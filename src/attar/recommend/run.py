"""``recommend``: which method to take for a data set, what to expect of it, and why."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import nn

from attar.core import registry
from attar.core.budget import require_memory
from attar.core.errors import AttarError, unknown
from attar.core.text import duration
from attar.data import Data, Image, Split, Tokens, Vector
from attar.data.load import Source, loaded
from attar.nets import Network
from attar.plan import Plan, plan
from attar.recommend.choose import GOALS, RANDOM, Expectation, Figure, is_known, nearest, ranking
from attar.recommend.evidence import About, evidence
from attar.select.budget import BALANCED, skew

KINDS = {Image: "image", Tokens: "text", Vector: "table"}
SHOWN = 5  #: methods in the table


@dataclass(frozen=True)
class Recommendation:
    """A method with settings for a data set, what to expect of it, and why; ``print`` shows all of it."""

    plan: Plan  #: the reduction, not run
    goal: str
    about: About  #: what was looked at
    expected: Expectation  #: of the method with these settings
    candidates: Sequence[Expectation]  #: all that serve the goal, best first
    known: bool  #: whether something like this data was measured
    near: str  #: the most similar problem that was measured
    passed: Sequence[str]  #: candidates that were passed over, with the reason

    @property
    def method(self) -> str:
        """The name of the method."""
        return registry.entry_of(self.plan.method).name

    @cached_property
    def seconds(self) -> float:
        """A rough estimate of the time on this machine, and no less than what was measured, by the number of rows."""
        near = nearest(self.about, evidence().problems)
        rows = self.about.rows / near.about.rows if near else 1.0
        return max(self.plan.seconds(), self.expected.cpu * max(1.0, rows))

    @property
    def arguments(self) -> dict[str, Any]:
        """What to call ``attar.reduce`` with, beside the data."""
        own = evidence().settings[self.expected.name]
        size = {"per_class": self.plan.per_class, "budget": self.plan.budget}
        return {"method": own.method, **size, "options": dict(own.options), "descent": dict(own.descent)}

    @property
    def flags(self) -> list[str]:
        """The method, its settings and the size as words of ``attar reduce``."""
        given = self.arguments
        named = {key: given[key] for key in ("method", "per_class")}
        named |= {} if given["budget"] == BALANCED else {"budget": given["budget"]}
        named |= given["descent"] | given["options"]
        return [word for name, value in named.items() for word in (f"--{name.replace('_', '-')}", str(value))]

    def command(self, data: str | None = None, loading: Sequence[str] = ()) -> str:
        """The command that does it.

        Args:
            data: The data as the user names it; by default what it was loaded from.
            loading: Flags with which the data is loaded.
        """
        origin = self.plan.origin
        named = data or ("DATA" if origin is None else origin.source)
        return shlex.join(["attar", "reduce", named, *loading, *self.flags])

    @property
    def expectation(self) -> str:
        """What to expect, in half a sentence."""
        gain, full = _beside(self.expected.gain), _beside(self.expected.full)
        return f"expect an accuracy {gain} a random subset and {full} the full data trained for as many steps"

    @property
    def why(self) -> str:
        """The reason, in one sentence."""
        what = f"{self.about.kind}, {self.about.rows:,} training examples, {self.about.classes} classes"
        if not self.known:
            return (
                f"No committed result is near this data ({what}; the nearest is {self.near}), so this is the safe "
                f"choice: {GOALS[self.goal]}, by what three in four of all results exceed."
            )
        after = "" if self.expected == self.candidates[0] else ", after those passed over,"
        return f"It has{after} {GOALS[self.goal]}, by results on data like this ({what}); the nearest is {self.near}."

    def __repr__(self) -> str:
        return f"Recommendation({self.method}, {self.plan.per_class} per class: {self.expectation}; print shows more)"

    def __str__(self) -> str:
        return "\n".join([*self.lines(), "", f"Run: {self.command()}"])

    def lines(self) -> list[str]:
        """Verdict, reason, the first candidates and notes."""
        lines = [
            f"{self.method}: {self.expectation}; about {duration(self.seconds)} and "
            f"{self.plan.memory() / 1e6:.0f} MB beside the libraries, with {self.plan.network.name}.",
            self.why,
            *([f"Passed over: {'; '.join(self.passed)}."] if self.passed else []),
            "",
            *_table(self.candidates),
            "Points of accuracy above a random subset and above the full data; NLL and ECE below a random subset; ± is "
            "one standard deviation between data sets; CPU seconds are those of the committed results.",
        ]
        if self.goal == "privacy":
            lines.append(
                "Learnt examples are no rows of the data, but they start from some and nothing is guaranteed: no "
                "membership attack is among the committed results, so measure it with `attar evaluate --privacy`."
            )
        said = skew(self.plan.data.hard.bincount(), self.plan.budget)
        return [*lines, *([f"Note: {said}"] if said else [])]


def recommend(
    data: Source | Data | Split,
    *,
    per_class: int = 10,
    minutes: float | None = None,
    goal: str = "accuracy",
    budget: str = BALANCED,
    network: str | Network | Callable[[], nn.Module] | None = None,
    device: torch.device | str | None = None,
) -> Recommendation:
    """Recommend a method for a data set, from results on data like it and the time that it takes on this machine.

    Args:
        data: Anything that ``attar.load`` takes, a ``Split``, or the training data itself.
        per_class: Examples to keep or learn per class.
        minutes: The longest time of the reduction on this machine; by default there is no limit. A random subset is
            fast enough if nothing else is.
        goal: ``accuracy``; ``calibration``, the lowest negative log-likelihood; ``privacy``, only examples that are no
            rows of the data; or ``speed``, the cheapest method within two points of the highest expected accuracy.
        budget: How classes share the examples, as for ``attar.reduce``.
        network: The network of the reduction; by default a small one for this kind of data.
        device: Where to compute; by default the data's device.
    """
    if minutes is not None and not 0 < minutes < float("inf"):
        raise AttarError(f"minutes must be a number above 0, got {minutes}: leave it out for no limit.")
    if goal not in GOALS:
        raise unknown("goal", goal, GOALS)
    given = loaded(data, device)
    train = given.train if isinstance(given, Split) else given
    plan(given, RANDOM, per_class=per_class, budget=budget, network=network)  # raises if a class is too small
    known, about = evidence(), _about(train, per_class)
    order, passed, near = ranking(about, known, goal), list[str](), nearest(about, known.problems)
    for expected in order:
        own = known.settings[expected.name]
        try:
            decided = plan(
                given,
                own.method,
                per_class=per_class,
                budget=budget,
                network=network,
                options=own.options,
                descent=own.descent or None,
            )
            if decided.descent is None:  # forecasts of others take a few seconds
                require_memory(decided.memory(), expected.name, "choose a smaller network")
        except AttarError as error:  # this network or machine cannot do it, another method may
            passed.append(f"{expected.name} ({str(error).rstrip('.')})")
            continue
        found = Recommendation(
            decided,
            goal,
            about,
            expected,
            order,
            is_known(about, known.problems),
            f"{near.data}, {near.about.per_class} per class" if near else "of another kind",
            tuple(passed),
        )
        if minutes is None or expected.name == RANDOM or found.seconds <= 60 * minutes:
            return found
        passed.append(f"{expected.name} (about {duration(found.seconds)})")
    raise AttarError(
        f"No method for the goal {goal} can do this ({'; '.join(passed)}): allow more, or change the goal."
    )


def _about(data: Data, per_class: int) -> About:
    kinds = [name for element, name in KINDS.items() if isinstance(data.spec.element, element)]
    return About(kinds[0] if kinds else "another kind", len(data), data.classes, per_class)


def _table(candidates: Sequence[Expectation]) -> list[str]:
    """The first methods, with what to expect of each; a random subset is always there."""
    listed = [each for place, each in enumerate(candidates) if place < SHOWN or each.name == RANDOM]
    rows = [("method", "above random", "above full", "NLL below", "ECE below", "CPU s")]
    for each in listed:
        rows.append(
            (
                each.name,
                _points(each.gain),
                _points(each.full),
                f"{each.nll.mean:+.2f} ± {each.nll.spread:.2f}",
                f"{each.ece.mean:+.2f}",
                f"{each.cpu:.1f}",
            )
        )
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip() for row in rows]


def _beside(figure: Figure) -> str:
    return f"{abs(figure.mean):.1f} ± {figure.spread:.1f} points {'above' if figure.mean >= 0 else 'below'}"


def _points(figure: Figure) -> str:
    return f"{figure.mean:+.1f} ± {figure.spread:.1f}"
