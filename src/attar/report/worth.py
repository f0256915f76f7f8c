"""DD-Ranking scores and privacy of a coreset."""

from __future__ import annotations

from attar.assess.fairness import normalised
from attar.assess.privacy import ABOVE, Membership
from attar.assess.questions import Assessment
from attar.assess.statistics import SPREAD
from attar.report import panels
from attar.report.blocks import Block, Figure, Measure, percent, plural, points

SHOWN = 400  #: nearest distances drawn as dots


def fairness(asked: Assessment) -> Block | None:
    """The DD-Ranking scores, each with its meaning."""
    found = asked.fairness
    if not found:
        return None
    gain, half = found.own.gain
    spread = "" if half is None else f" ± {100 * half:.1f}"
    nothing, ars = f"{normalised(0):.2f}", found.ars()
    measures = [
        Measure(
            "IOR",
            points(gain).replace(" points", f"{spread} points"),
            "Improvement over random: accuracy minus that of random subsets with the same size, labels and training, "
            f"over {plural(len(found.own.coreset), 'seed')}{_spread(half)}. Higher is better.",
        ),
        Measure(
            "HLR",
            points(found.hlr),
            "Hard-label recovery: accuracy lost against the full data with hard labels only. Lower is better.",
        ),
        Measure(
            "LRS",
            f"{found.lrs():.3f}",
            f"Label-robust score: both of the above in one number from 0 to 1; {nothing} is neither gain nor loss.",
        ),
        Measure(
            "ARS",
            "–" if ars is None else f"{ars:.3f}",
            "Augmentation-robust score: not measured, since the data has no augmentation."
            if ars is None
            else f"Augmentation-robust score: the gain over random with and without augmentation, from 0 to 1; "
            f"{nothing} is no gain.",
        ),
    ]
    text = (
        "High accuracy may come from soft labels or strong augmentation rather than from the examples. The DD-Ranking "
        "scores separate these effects."
    )
    return Block("Gain from the examples themselves", text, measures=measures)


def _spread(half: float | None) -> str:
    return "" if half is None else f"; {SPREAD}"


def privacy(asked: Assessment, colour: str) -> Block | None:
    """Distances to the training examples, and membership inference."""
    if not asked.nearest and not asked.membership:
        return None
    figures, measures, text = [], [], "What the examples reveal about the training data."
    if asked.nearest:
        figures.append(_nearest(asked.nearest, asked.name, colour))
        near, copies = sorted(asked.nearest), sum(value == 0 for value in asked.nearest)
        measures += [
            Measure("Exact copies", f"{copies:,} of {len(near):,}", "Examples identical to a training example."),
            Measure(
                "Median distance", f"{near[len(near) // 2]:.2f}", "From an example to the nearest training example."
            ),
        ]
    if asked.membership:
        measures += _membership(asked.membership)
        text += (
            " For membership inference, the method made new coresets with some training examples and without others, "
            "and an attacker classified which were used."
        )
    return Block("Privacy", text, figures, measures=measures)


def _nearest(distances: list[float], name: str, colour: str) -> Figure:
    stride = -(-len(distances) // SHOWN)
    shown = sorted(distances)[::stride]
    title = f"Distance of every example of {name} to the nearest training example"
    axis = "distance to the nearest training example"
    svg = panels.heaps(shown, colour, title, axis, ("between training examples", 1.0))
    each = "one example" if stride == 1 else f"one of {stride} examples"
    note = (
        "0 is an exact copy, 1 is the typical distance between training examples, well above 1 is unlike any of them."
    )
    return Figure(svg, "", f"A dot is {each}. {note}")


def _membership(found: Membership) -> list[Measure]:
    beyond = found.auroc - 0.5 > 2 * found.luck
    verdict = (
        "more than two standard errors above it, so the coreset reveals which examples were used."
        if beyond
        else "not two standard errors above it, so this attack cannot tell which examples were used."
    )
    return [
        Measure("Membership AUROC", f"{found.auroc:.3f}", f"Chance is 0.5 ± {found.luck:.3f}; this is {verdict}"),
        Measure(
            "True-positive rate at 1 % FPR",
            "–" if found.tpr is None or found.above < ABOVE else percent(found.tpr),
            f"{found.rate[0].upper()}{found.rate[1:]}; chance is 1 %.",
        ),
    ]
