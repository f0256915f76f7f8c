"""Robustness and transfer: corruptions, attacks, other networks."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean

from attar.assess.attack import Attacked
from attar.assess.corruption import Corrupted
from attar.assess.questions import Assessment
from attar.assess.statistics import half_width
from attar.assess.transfer import Transferred
from attar.infer.diagnose import in_words
from attar.report import charts, panels
from attar.report.blocks import Block, Figure, Table, percent
from attar.report.estimate import Percent
from attar.study.cross import Crossings


def corruption(asked: Assessment) -> Block | None:
    """Accuracy under every corruption and severity."""
    found = asked.corruption
    if not found:
        return None
    severities = sorted({one.severity for one in found})
    by_name: dict[str, list[Corrupted]] = {}
    for one in found:
        by_name.setdefault(one.name, []).append(one)
    rows = [_row(name.replace("_", " "), some, severities) for name, some in by_name.items()]
    overall = [mean(100 * one.accuracy for one in found if one.severity == level) for level in severities]
    rows.append(panels.Heat("mean", overall, _beside(found), strong=True))
    title = f"Accuracy of {asked.name} under corruption, in percent"
    svg = panels.matrix(rows, [str(level) for level in severities], ["mean", "NLL"], "severity", title)
    hardest = min(by_name, key=lambda name: mean(one.accuracy for one in by_name[name])).replace("_", " ")
    shares = [one.accuracy for one in found]
    text = (
        f"Accuracy in percent on {max(one.n for one in found):,} test examples that were corrupted, from mild "
        f"(severity 1) to severe (5). Without corruption it is {percent(asked.scores.accuracy)}; over all corruptions "
        f"it is {percent(mean(shares))}, and {hardest} is the hardest."
    )
    note = f"Colour goes from {percent(min(shares), 0)} (palest) to {percent(max(shares), 0)} (strongest). "
    note += "On the right: means over severities."
    return Block("Corrupted inputs", text, [Figure(svg, "", note)])


def _row(label: str, some: Sequence[Corrupted], severities: Sequence[int]) -> panels.Heat:
    at = {one.severity: 100 * one.accuracy for one in some}
    return panels.Heat(label, [at.get(level) for level in severities], _beside(some))


def _beside(some: Sequence[Corrupted]) -> list[str]:
    return [f"{100 * mean(one.accuracy for one in some):.1f}", f"{mean(one.nll for one in some):.2f}"]


def attacks(asked: Assessment) -> Block | None:
    """Accuracy without and under each attack."""
    if not asked.attacks:
        return None
    lines = [
        [
            one.name,
            _epsilon(one.epsilon),
            f"{100 * one.clean:.1f}",
            f"{100 * one.robust:.1f}",
            _effort(one),
            f"{one.n:,}",
        ]
        for one in asked.attacks
    ]
    head = ["Attack", "ε", "Clean, %", "Under attack, %", "Steps × restarts", "Examples"]
    text = (
        "An attacker who knows the whole posterior may change every pixel by at most ε. The accuracy under attack is "
        "an upper bound: a stronger attack may lower it. apgd counts an image as broken if APGD with the "
        "cross-entropy or with the DLR loss breaks it."
    )
    notes = [f"{one.name}: {one.note}." for one in asked.attacks if one.note]
    return Block("Adversarial attacks", text, table=Table("Attacks", head, lines), warnings=notes)


def _effort(one: Attacked) -> str:
    """Steps and restarts; AutoAttack has its own."""
    if one.steps is None or one.restarts is None:
        return "its own"
    return f"{one.steps:,} × {one.restarts:,}" + (", then AutoAttack’s own" if one.name == "standard" else "")


def _epsilon(epsilon: float) -> str:
    steps = round(2 * 255 * epsilon) / 2
    return f"{steps:g}/255" if steps and abs(steps / 255 - epsilon) < 1e-4 else f"{epsilon:.3g}"


def transfer(asked: Assessment, colour: str) -> Block | None:
    """Accuracy of other networks trained on the same coreset."""
    if not asked.transfer:
        return None
    trained = [(one, value) for one in asked.transfer if (value := _accuracy(one))]
    dots = [charts.Dot(one.network, value, [value.mean], colour) for one, value in trained]
    own, title = 100 * asked.scores.accuracy, f"Test accuracy of networks trained on the examples of {asked.name}"
    note = "The dashed line is the posterior of the other answers in this section."
    figures = [
        Figure(charts.dots_with_errors([("", some)], "test accuracy, %", title, own), "", note)
        for some in [dots]
        if some
    ]
    text = (
        "Other networks, trained on the same examples from scratch. Balanced accuracy is the mean over classes, worst "
        "class the lowest recall of one."
    )
    known = [one.majority for one in asked.transfer if one.majority is not None]
    text += f" Always answering the most frequent training class has {percent(known[0])}." if known else ""
    text += "".join(f" {one.network}: {in_words(one.chains)}." for one in asked.transfer if one.chains)
    head = ["Network", "Parameters", "Seeds", "Accuracy, %", "Balanced, %", "Worst class, %", "NLL", "Time, s"]
    table = Table("Networks", head, [_line(one) for one in asked.transfer])
    problems = [_problem(one.network, one.problem) for one in asked.transfer if one.problem]
    return Block("Transfer to other networks", text, figures, table, warnings=problems)


def _problem(network: str, sentence: str) -> str:
    return sentence if network in sentence else f"{network}: {sentence}"


def _accuracy(one: Transferred) -> Percent | None:
    if one.accuracy is None:
        return None
    return Percent(100 * one.accuracy, half_width(100 * (one.error or 0), one.seeds))


def _line(one: Transferred) -> list[str]:
    value = _accuracy(one)
    cells = [
        None if one.parameters is None else f"{one.parameters:,}",
        f"{one.seeds:,}" if one.seeds else None,
        None if value is None else f"{value:.1f}",
        *(None if share is None else f"{100 * share:.1f}" for share in (one.balanced, one.worst)),
        None if one.nll is None else f"{one.nll:.3f}",
        None if one.cost is None else f"{one.cost.wall:,.1f}",
    ]
    return [one.network, *("–" if cell is None else cell for cell in cells)]


def transfer_matrix(asked: Sequence[Assessment], crossed: Crossings | None = None) -> Figure | None:
    """Methods × networks, if at least two coresets were used: one each, or all of a study."""
    found = [(one.name, {t.network: t.accuracy for t in one.transfer if t.accuracy is not None}) for one in asked]
    for (method, size), seen in crossed.rows() if crossed else ():
        found.append((f"{method}, {size}", {network: mean(values) for network, values in seen.items()}))
    shown = [(name, at) for name, at in found if at]
    if len(shown) < 2:
        return None
    asked_for = crossed.networks if crossed else []  # networks that failed have a column of dashes
    networks = list(dict.fromkeys([*asked_for, *(network for _, at in shown for network in at)]))
    cells = [[100 * at[name] if name in at else None for name in networks] for _, at in shown]
    rows = [panels.Heat(name, row) for (name, _), row in zip(shown, cells, strict=True)]
    known = [value for row in cells for value in row if value is not None]
    note = f"Colour goes from {min(known):.0f} % (palest) to {max(known):.0f} % (strongest)."
    note += " A dash means not trained, or failed." if any(None in row for row in cells) else ""
    note += " The number after a method is its number of examples per class." if crossed else ""
    svg = panels.matrix(rows, networks, [], "trained network", "Test accuracy by coreset and network, in percent")
    return Figure(svg, "", note)
