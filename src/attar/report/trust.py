"""How far a posterior's probabilities can be trusted: calibration, doubt, and the distance to the full data."""

from __future__ import annotations

from attar.assess.metrics import Scores
from attar.assess.questions import Assessment
from attar.report import charts, panels
from attar.report.blocks import Block, Figure, Measure, Table, percent

FEWEST = 0.05  #: share of the examples below which accuracy is a matter of luck


def calibration(asked: Assessment, colour: str) -> Block:
    """Scores as they are and, where it was asked, after temperature scaling."""
    states = [("as it is", asked.scores)]
    text = "Bars on the dashed diagonal are right as often as they say; bars below it are overconfident."
    if asked.calibrated and asked.temperature is not None:
        states = [("before", asked.scores), ("after", asked.calibrated)]
        text += f" Temperature scaling, fitted on validation examples, {_temper(asked.temperature)}"
        text += _change(asked.scores.ece, asked.calibrated.ece)
    figures = [
        Figure(
            charts.reliability(scores.reliability, colour, f"Reliability of {asked.name}, {state}"),
            state,
            f"ECE {scores.ece:.3f}",
        )
        for state, scores in states
    ]
    head = ["", "Accuracy, %", "NLL", "ECE", "Adaptive ECE", "Brier", "Entropy, nats"]
    table = Table("Scores", head, [[state, *_cells(scores)] for state, scores in states])
    return Block("Calibration", text, figures, table)


def _temper(temperature: float) -> str:
    does = "softens" if temperature > 1 else "sharpens"
    return f"{does} its probabilities (T = {temperature:.2f}; 1 leaves them as they are)"


def _change(before: float, after: float) -> str:
    kept = " The order of the classes, and so the accuracy, stays as it was."
    verb = "lowers" if after < before else "raises" if after > before else "keeps"
    return f" and {verb} the calibration error on test from {before:.3f} to {after:.3f}.{kept}"


def _cells(scores: Scores) -> list[str]:
    optional = [_known(scores.adaptive_ece), f"{scores.brier:.3f}", _known(scores.entropy)]
    return [f"{100 * scores.accuracy:.1f}", f"{scores.nll:.3f}", f"{scores.ece:.3f}", *optional]


def _known(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def selective(asked: Assessment, colour: str) -> Block | None:
    """Accuracy where only the surest predictions are kept."""
    total = asked.scores.accuracy
    curve = [(share, accuracy) for share, accuracy in asked.selective if FEWEST <= share < 1] + [(1.0, total)]
    if len(curve) < 3:
        return None
    half = min(curve, key=lambda point: abs(point[0] - 0.5))
    text = (
        f"What is gained by leaving doubtful examples to a person: who answers all gets {percent(total)} right, who "
        f"answers only the surest {percent(half[0], 0)} gets {percent(half[1])} right. A curve that falls to the right "
        f"tells that doubt is where errors are."
    )
    shown = [(100 * share, 100 * accuracy) for share, accuracy in curve]
    title = f"Accuracy of {asked.name} against the share of examples answered"
    svg = panels.trade_off(shown, colour, title, 100 * total)
    return Block("Answering only when sure", text, [Figure(svg, "", "The dashed line answers every example.")])


def detection(asked: Assessment) -> Block | None:
    """Whether doubt tells other data sets from this one."""
    if not asked.detection:
        return None
    text = (
        "Doubt should be larger for inputs of another kind. AUROC is the share of pairs, one strange and one familiar "
        "example, in which the strange one has the more doubtful prediction: 1 is perfect, 0.5 is luck."
    )
    best_first = sorted(asked.detection.items(), key=lambda pair: -pair[1])
    lines = [[name, f"{auroc:.3f}"] for name, auroc in best_first]
    return Block("Strange inputs", text, table=Table("Telling other data apart", ["Other data", "AUROC"], lines))


def distance(asked: Assessment) -> Block | None:
    """How far predictions are from those of the full data."""
    found = asked.distance
    if not found:
        return None
    measures = [
        Measure("Agreement", percent(found.agreement), "Test examples that get the same class from both."),
        Measure(
            "Total variation",
            f"{found.total_variation:.3f}",
            "The most by which the two differ on the probability of anything, on average: 0 is equal, 1 is opposite.",
        ),
        Measure("Symmetric KL", f"{found.symmetric_kl:.3f} nats", "Counts confident disagreement most: 0 is equal."),
    ]
    if asked.ratio is not None:
        kept = "Of the full data’s accuracy: the distillation ratio."
        measures.insert(0, Measure("Accuracy kept", f"{asked.ratio:.1f}\u00a0%", kept))
    text = "Its predictions beside those of a posterior inferred in the same way from all training data, on test."
    return Block("Distance to the full data", text, measures=measures)
