"""Results as tables and lines for a terminal."""

from __future__ import annotations

from collections.abc import Callable
from statistics import mean

from rich.box import SIMPLE_HEAD
from rich.table import Table

from attar.assess.metrics import Scores
from attar.assess.questions import Assessment
from attar.assess.statistics import SPREAD, half_width, over_seeds, with_half
from attar.cli.console import err, out, plain
from attar.continual.results import Continual, forgetting, interval, last
from attar.infer.diagnose import in_words
from attar.nas.results import TOP, Nas, recalls, summarised
from attar.study.compared import differences, distillation_sizes, how_long
from attar.study.cross import Crossings
from attar.study.protocol import HONEST
from attar.study.results import COLUMNS, Run, Study, cells, legend
from attar.study.spec import CONVERGED, FULL


def score_table(study: Study) -> Table:
    """Test scores of a study, mean ± half width of the 95 % t-interval over seeds; fits 80 columns."""
    about = f"{study.data['name']}, {study.config['network']}, test set of {study.data['test']:,}"
    about += "" if study.protocol == HONEST else f", protocol {study.protocol}"
    return _by_row(study, about, [name for name, _, _ in COLUMNS], cells, _notes(study))


def cost_table(study: Study) -> Table:
    """What every row took: mean wall time of reduction and inference, and peak memory."""

    def spent(runs: list[Run]) -> list[str]:
        times = mean(run.reduce_cost.wall for run in runs), mean(run.infer_cost.wall for run in runs)
        memory = max(max(run.reduce_cost.memory, run.infer_cost.memory) for run in runs)
        return [*(f"{time:.1f}" for time in times), f"{memory / 1e6:.0f}"]

    heads = ["reduction, s", "inference, s", "peak, MB"]
    return _by_row(study, "cost", heads, spent, "mean wall time, and highest memory of the process")


def _by_row(study: Study, title: str, heads: list[str], figures: Callable[[list[Run]], list[str]], note: str) -> Table:
    """One line for every method and size."""
    table = Table(title=title, box=SIMPLE_HEAD, padding=0, caption=note, caption_justify="left")
    table.add_column("method", no_wrap=True)
    for heading in ("n", *heads):
        table.add_column(heading, justify="right", no_wrap=True)
    for (method, size), runs in study.groups().items():
        table.add_row(method, "all" if size is None else str(size), *figures(runs))
    return table


def transfer_table(crossed: Crossings) -> Table:
    """Test scores of every network on the coresets of a study, mean ± half width of the t-interval over seeds."""
    known = [cell.found.majority for cell in crossed.cells if cell.found.majority is not None]
    notes = [f"mean over seeds; {SPREAD}; balanced: mean over classes, worst: lowest recall of a class"]
    notes += [f"always answering the most frequent training class: {100 * known[0]:.1f} %"] if known else []
    note, left = "\n".join([*notes, *crossed.mixing()]), ("method", "network")
    about = "test accuracy in % of other networks"
    table = Table(title=about, box=SIMPLE_HEAD, padding=(0, 1, 0, 0), caption=note, caption_justify="left")
    for heading in ("method", "n", "network", "accuracy", "balanced", "worst"):
        table.add_column(heading, justify="left" if heading in left else "right")
    for (method, size, network), found in crossed.groups().items():
        scores = ([one.accuracy for one in found], [one.balanced for one in found], [one.worst for one in found])
        table.add_row(method, str(size), network, *map(_shares, scores))
    return table


def _shares(values: list[float | None]) -> str:
    """Mean over seeds in percent; a dash where there is none, as in older files."""
    known = [100 * value for value in values if value is not None]
    return over_seeds(known, ".1f") if known else "–"


def stage_table(found: Continual) -> Table:
    """Test accuracy by stage and forgetting, with 95 % t-intervals over seeds."""
    about = f"{found.stages[0].name}, {found.config['network']}, {found.config['regime']}: test accuracy in %"
    note = f"mean over seeds; {SPREAD}; full: all old data is kept; after the last stage, balanced: mean over classes, "
    note += "worst: lowest recall of a class"
    if found.majority:
        note += f"; always answering the most frequent training class: {100 * found.majority[-1]:.1f} %"
    note = "\n".join([note, *found.mixing()])
    table = Table(title=about, box=SIMPLE_HEAD, padding=(0, 1, 0, 0), caption=note, caption_justify="left")
    for heading in ("memory", "n", "first", "last stage", "balanced", "worst", "average", "forgetting"):
        table.add_column(heading, justify="left" if heading == "memory" else "right", no_wrap=True)
    for method, runs in found.groups().items():
        curves = [found.curve(run) for run in runs]
        scores = [curve[0] for curve in curves], [curve[-1] for curve in curves], list(map(mean, curves))
        forgot = [forgetting(run.test) for run in runs]
        recalls = last([run.balanced for run in runs]), last([run.worst for run in runs])
        shown = [interval(values) for values in (*scores, forgot)]
        table.add_row(method, f"{runs[0].memory[-1]:,}", *shown[:2], *recalls, *shown[2:])
    return table


def search_table(found: Nas) -> Table:
    """Rank correlations, the chosen network and the time of every search."""
    about = f"{found.data['name']}, {len(found.networks)} networks"
    note = (
        "correlation: Spearman's with training on the full data, on validation; chosen: test accuracy of the network "
        "that the search chose, trained on the full data; time: CPU time of the search, and of making the proxy set, "
        "relative to the full data; balanced, worst: of the chosen network, mean over classes and lowest recall of one"
    )
    if found.majority is not None:
        note += f"; always answering the most frequent training class: {100 * found.majority:.1f} %"
    note = "\n".join([note, *found.mixing()])
    table = Table(title=about, box=SIMPLE_HEAD, padding=(0, 1, 0, 0), caption=note, caption_justify="left")
    for heading in ("trained on", "correlation", f"top {TOP}", "chosen %", "balanced", "worst", "time %"):
        table.add_column(heading, justify="left" if heading == "trained on" else "right", no_wrap=True)
    for row, seeds in found.searches().items():
        shown = summarised(found, row, seeds)
        table.add_row(row, *shown[:3], *recalls(found, row, seeds), shown[3])
    return table


def _notes(study: Study) -> str:
    names = {method for method, _ in study.groups()}
    notes = ["n: examples per class", legend(study)]
    notes += ["uniform: a random subset"] if "uniform" in names else []
    for size in sorted({run.per_class for run in study.runs if run.per_class is not None}):
        if best := study.best_selection(size):
            notes.append(f"best selection at {size} per class, by validation: {best}")
    budget = "the same" if study.protocol == HONEST else "its published"
    notes += [f"full: all training data with {budget} training budget"] if FULL in names else []
    notes += [f"{CONVERGED}: {how_long(study.groups()[CONVERGED, None])}"] if CONVERGED in names else []
    notes += study.labels()
    notes += [kept] if (kept := distillation_sizes(study)) else []
    return "\n".join([*notes, *differences(study)])


def summary(scores: list[Scores], majority: int) -> str:
    """Scores over seeds in a few lines, beside the accuracy of always answering the class ``majority``."""

    def figures(*names: str) -> str:
        return "  ".join(f"{name} {over_seeds([getattr(s, name) for s in scores], '.3f')}" for name in names)

    n, seeds = sum(map(sum, scores[0].confusion)), f"{len(scores)} seed{'s' if len(scores) > 1 else ''}"
    return "\n".join(
        [
            figures("accuracy", "balanced", "worst"),
            f"{figures('nll', 'ece')}{_floor(scores)}  {figures('brier')}",
            f"({n:,} test examples, {seeds}{f'; {SPREAD}' if len(scores) > 1 else ''}; balanced: mean over classes, "
            f"worst: lowest recall of a class, calibrated: mean ECE of a perfectly calibrated predictor; always "
            f"answering the most frequent training class: {scores[0].share(majority):.3f})",
        ]
    )


def _floor(scores: list[Scores]) -> str:
    """The ECE of a perfectly calibrated predictor, which is not zero."""
    known = [score.ece_floor for score in scores if score.ece_floor is not None]
    return f" (calibrated: {mean(known):.3f})" if known else ""


def print_answers(answers: Assessment) -> None:
    """Print the answers, each as a line or table."""
    if answers.calibrated:
        out.print(f"at temperature {answers.temperature:.2f}: {answers.calibrated}")
    if answers.distance:
        trained = "trained to convergence" if answers.converged else "with the same training"
        out.print(
            f"distance to the full data with the same training: {answers.distance}; "
            f"{answers.ratio:.1f} % of the accuracy of the full data {trained}"
        )
    if answers.floor:
        out.print(f"between two posteriors of the full data: {answers.floor}")
    for name, auroc in answers.detection.items():
        out.print(f"out-of-distribution detection, {plain(name)}: AUROC {auroc:.3f}", markup=False)
    if answers.fairness:
        out.print(str(answers.fairness))
    if answers.membership:
        out.print(
            f"membership inference: AUROC {answers.membership.auroc:.3f}; TPR at 1 % FPR {answers.membership.rate}"
        )
    if answers.nearest:
        out.print(
            f"nearest training example: at {min(answers.nearest):.2f} of the typical distance between training examples"
        )
    for table in (_corruptions(answers), _attacks(answers), _transfer(answers)):
        if table.rows:
            out.print(table)
    for warning in answers.diagnostics.get("warnings", []):
        err.print(f"warning: {warning}", style="yellow", markup=False)


def _corruptions(answers: Assessment) -> Table:
    found = {(row.name, row.severity): row.accuracy for row in answers.corruption}
    names = list(dict.fromkeys(row.name for row in answers.corruption))
    severities = sorted({row.severity for row in answers.corruption})
    examples = max((row.n for row in answers.corruption), default=0)
    table = Table(
        f"corruption: accuracy % on {examples:,} examples by severity", *map(str, severities), box=SIMPLE_HEAD
    )
    for name in names:
        table.add_row(name, *(f"{100 * found[name, severity]:.1f}" for severity in severities))
    return table


def _attacks(answers: Assessment) -> Table:
    table = Table("attack", "ε", "clean %", "robust %", "examples", box=SIMPLE_HEAD)
    for row in answers.attacks:
        table.add_row(
            row.name, f"{row.epsilon * 255:g}/255", f"{100 * row.clean:.1f}", f"{100 * row.robust:.1f}", str(row.n)
        )
    table.caption = "; ".join(dict.fromkeys(row.note for row in answers.attacks if row.note)) or None
    return table


def _transfer(answers: Assessment) -> Table:
    table = Table("network", "parameters", "seeds", "accuracy %", "balanced", "worst", "NLL", box=SIMPLE_HEAD)
    for row in answers.transfer:
        if row.accuracy is None or row.nll is None:
            table.add_row(row.network, *["–"] * 6)
        else:
            accuracy = with_half(100 * row.accuracy, half_width(100 * (row.error or 0), row.seeds), ".1f")
            recalls = _shares([row.balanced]), _shares([row.worst])
            table.add_row(row.network, f"{row.parameters:,}", str(row.seeds), accuracy, *recalls, f"{row.nll:.2f}")
    chains = [f"{row.network}: {in_words(row.chains)}" for row in answers.transfer if row.chains]
    table.caption = "\n".join(chains) or None
    return table
