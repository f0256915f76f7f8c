"""The sentence at the top of the page: what the best method reaches, beside random and full data, and its time."""

from __future__ import annotations

from statistics import mean

from attar.assess.statistics import FEWEST, Paired, with_half
from attar.core.text import duration
from attar.report.rows import Row, the_best, the_full
from attar.study.compared import RANDOM, paired
from attar.study.results import Study
from attar.study.spec import CONVERGED

TOO_FEW = f"fewer than {FEWEST} seeds cannot say which is higher"


def verdict(study: Study, table: list[Row]) -> tuple[str, str]:
    """The accuracy of the method that is best on validation, and the rest of the sentence.

    A difference is told as one only where its interval over the seeds says so; with too few seeds, accuracies stand
    side by side. Where only the full data was trained on, the sentence is about it.
    """
    best, full = the_best(table), the_full(table)
    if best is None:
        return _percent(table[-1]), f"from {table[-1].called}"
    random = next((row for row in table if row.method == RANDOM and row.size == best.size), None)
    rivals = {"random": None if random is best else random, _name(full): full}
    told = [(name, row, paired(best.runs, row.runs)) for name, row in rivals.items() if row]
    clear = [_difference(gap, name) for name, _, gap in told if gap and gap.order != "too few seeds"]
    plain = [f"{_percent(row)} {_origin(name)}" for name, row, gap in told if not gap or gap.order == "too few seeds"]
    parts = [f"from {best.size:,} {_things(study)} {'picked at random' if random is best else f'by {best.label}'}"]
    parts[0] += f", {best.caution}" if best.caution else ""
    parts[0] += f": {', '.join(clear)}" if clear else ""
    parts += [f"beside {' and '.join(plain)} ({TOO_FEW})"] if plain else []
    spent = mean(run.reduce_cost.wall for run in best.runs)
    parts += [f"made in {duration(spent)}"] if spent else []
    return _percent(best), "; ".join(parts)


def _name(full: Row | None) -> str:
    return "converged full data" if full and full.method == CONVERGED else "full data with the same training"


def _origin(name: str) -> str:
    """Where an accuracy comes from, after its number."""
    return "from random ones" if name == "random" else f"from {name}"


def _difference(gap: Paired, name: str) -> str:
    """A difference in points, as far as its interval goes."""
    if gap.order == "above":
        return f"+{gap.difference:.1f} over {name}"
    if gap.order == "below":
        return f"{-gap.difference:.1f} below {name}"
    told = with_half(gap.difference, gap.half, "+.1f").replace("-", "−")
    return f"not distinguishable from {name} ({told})"


def _things(study: Study) -> str:
    shape = study.data.get("shape")
    return "images" if isinstance(shape, list | tuple) and len(shape) == 3 else "examples"


def _percent(row: Row) -> str:
    return f"{row.accuracy.mean:.1f}\u00a0%"
