"""What a coreset's examples are worth by themselves, and what they tell about those they came from."""

from __future__ import annotations

from attar.assess.fairness import normalised
from attar.assess.privacy import Membership
from attar.assess.questions import Assessment
from attar.report import panels
from attar.report.blocks import Block, Figure, Measure, percent, points

SHOWN = 400  #: nearest distances drawn as dots


def fairness(asked: Assessment) -> Block | None:
    """The scores of DD-Ranking, each with its meaning."""
    found = asked.fairness
    if not found:
        return None
    gain, error = found.own.gain
    spread = f" ± {100 * error:.1f}" if len(found.own.coreset) > 1 else ""
    nothing, ars = f"{normalised(0):.2f}", found.ars()
    measures = [
        Measure(
            "IOR",
            points(gain).replace(" points", f"{spread} points"),
            "Improvement over random: accuracy beyond that of random subsets of the same size, labels and training. "
            "More is better.",
        ),
        Measure(
            "HLR",
            points(found.hlr),
            "Hard-label recovery: what is lost against the full data when only hard labels are used. Less is better.",
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
        "A high accuracy may come from soft labels or strong augmentation rather than from the examples. These scores "
        "(DD-Ranking) take them apart."
    )
    return Block("What the examples themselves are worth", text, measures=measures)


def privacy(asked: Assessment, colour: str) -> Block | None:
    """Distances to the training examples, and an attack on membership."""
    if not asked.nearest and not asked.membership:
        return None
    figures, measures, text = [], [], "What the examples tell about those they were made from."
    if asked.nearest:
        figures.append(_nearest(asked.nearest, asked.name, colour))
        near, copies = sorted(asked.nearest), sum(value == 0 for value in asked.nearest)
        measures += [
            Measure("Exact copies", f"{copies:,} of {len(near):,}", "Examples that are training examples, unchanged."),
            Measure(
                "Median distance", f"{near[len(near) // 2]:.2f}", "From an example to the nearest training example."
            ),
        ]
    if asked.membership:
        measures += _membership(asked.membership)
        text += (
            " For membership, coresets were made anew by the same method, with some training examples and without "
            "others, and an attacker was asked which were used."
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
        "At 0 it is an exact copy, at 1 as far away as training examples are from each other, well above 1 like none."
    )
    return Figure(svg, "", f"A dot is {each}. {note}")


def _membership(found: Membership) -> list[Measure]:
    beyond = found.auroc - 0.5 > 2 * found.luck
    verdict = (
        "above it by more than two standard errors, so the coreset gives away who was used."
        if beyond
        else "not above it by two standard errors, so this attack cannot tell who was used."
    )
    return [
        Measure("Membership AUROC", f"{found.auroc:.3f}", f"Luck is 0.5 ± {found.luck:.3f}; this is {verdict}"),
        Measure(
            "Found at 1 % false alarms",
            percent(found.tpr),
            f"Of {found.members:,} members, while at most 1 % of {found.others:,} others are named; luck finds 1 %.",
        ),
    ]
