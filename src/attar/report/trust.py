"""Calibration, selective prediction, out-of-distribution detection, and distance to the full data."""

from __future__ import annotations

from attar.assess.metrics import Scores
from attar.assess.questions import Assessment
from attar.report import charts, panels
from attar.report.blocks import Block, Figure, Measure, Table, percent

FEWEST = 0.05  #: coverage below which accuracy is too noisy to show


def calibration(asked: Assessment, colour: str) -> Block:
    """Scores and, if asked for, those after temperature scaling."""
    states = [("as it is", asked.scores)]
    text = (
        "Bars on the dashed diagonal are calibrated; bars below it are overconfident. The ECE of a finite test set is "
        "never zero: the next column is that of a perfectly calibrated predictor with the same confidences."
    )
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
    head = [
        "",
        "Accuracy, %",
        "Balanced, %",
        "Worst class, %",
        "NLL",
        "ECE",
        "if calibrated",
        "Adaptive ECE",
        "Brier",
        "Entropy, nats",
    ]
    table = Table("Scores", head, [[state, *_cells(scores)] for state, scores in states])
    return Block("Calibration", text, figures, table)


def _temper(temperature: float) -> str:
    does = "softens" if temperature > 1 else "sharpens"
    return f"{does} its probabilities (T = {temperature:.2f}; 1 means no change)"


def _change(before: float, after: float) -> str:
    kept = " The order of the classes, and so the accuracy, does not change."
    return f"; the calibration error on test is {before:.3f} before and {after:.3f} after.{kept}"


def _cells(scores: Scores) -> list[str]:
    optional = [_known(scores.adaptive_ece), f"{scores.brier:.3f}", _known(scores.entropy)]
    recalls = [f"{100 * share:.1f}" for share in (scores.accuracy, scores.balanced, scores.worst)]
    return [*recalls, f"{scores.nll:.3f}", f"{scores.ece:.3f}", _known(scores.ece_floor), *optional]


def _known(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def selective(asked: Assessment, colour: str) -> Block | None:
    """Accuracy if only the most confident predictions are kept."""
    total = asked.scores.accuracy
    curve = [(share, accuracy) for share, accuracy in asked.selective if FEWEST <= share < 1] + [(1.0, total)]
    if len(curve) < 3:
        return None
    half = min(curve, key=lambda point: abs(point[0] - 0.5))
    text = (
        f"Accuracy if the model answers only when it is confident: on all examples it is {percent(total)}, on the "
        f"most confident {percent(half[0], 0)} it is {percent(half[1])}. A curve that falls to the right means that "
        f"errors are among the uncertain predictions."
    )
    shown = [(100 * share, 100 * accuracy) for share, accuracy in curve]
    title = f"Accuracy of {asked.name} against coverage"
    svg = panels.trade_off(shown, colour, title, 100 * total)
    return Block("Selective prediction", text, [Figure(svg, "", "The dashed line is the accuracy on all examples.")])


def detection(asked: Assessment) -> Block | None:
    """AUROC of out-of-distribution detection by data set."""
    if not asked.detection:
        return None
    text = (
        "Predictions should be less certain for inputs from another distribution. AUROC is the share of pairs, one "
        "such input and one test example, in which the former has the higher entropy: 1 is perfect, 0.5 is chance."
    )
    best_first = sorted(asked.detection.items(), key=lambda pair: -pair[1])
    lines = [[name, f"{auroc:.3f}"] for name, auroc in best_first]
    return Block(
        "Out-of-distribution detection", text, table=Table("Other data sets", ["Other data set", "AUROC"], lines)
    )


def distance(asked: Assessment) -> Block | None:
    """Distance of the predictions to those of the full data."""
    found, floor = asked.distance, asked.floor
    if not found:
        return None
    same = "Share of test examples with the same predicted class."
    event = "The largest difference in the probability of any event, on average: 0 is equal, 1 is opposite."
    confident = "Weights confident disagreement most: 0 is equal."
    measures = [
        Measure("Agreement", percent(found.agreement), same + (_beside(percent(floor.agreement)) if floor else "")),
        Measure(
            "Total variation",
            f"{found.total_variation:.3f}",
            event + (_beside(f"{floor.total_variation:.3f}") if floor else ""),
        ),
        Measure(
            "Symmetric KL",
            f"{found.symmetric_kl:.3f} nats",
            confident + (_beside(f"{floor.symmetric_kl:.3f} nats") if floor else ""),
        ),
    ]
    if asked.ratio is not None:
        trained = "trained to convergence" if asked.converged else "with the same training, not trained to convergence"
        kept = f"Share of the accuracy of the full data {trained}."
        measures.insert(0, Measure("Accuracy kept", f"{asked.ratio:.1f}\u00a0%", kept))
    text = "Test predictions, compared with those of a posterior inferred in the same way from all training data."
    if floor:
        text += (
            " Two posteriors of the full data differ too, by their random seeds: that distance, given beside each, is "
            "the floor that no coreset can be expected to fall below."
        )
    return Block("Distance to the full data", text, measures=measures)


def _beside(value: str) -> str:
    return f" Full data against full data: {value}."
