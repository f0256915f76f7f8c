from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from attar.report import render
from attar.report.replies import replies
from attar.report.rows import rows, the_best
from tests.report.reading import section, text
from tests.report.studies import CLASSES, study
from tests.report.test_map import pictures, split


def test_worst_and_most_uncertain_answers_of_the_best_row_come_with_their_probabilities(tmp_path: Path) -> None:
    made = study(tmp_path)
    best = the_best(rows(made))
    assert best is not None
    known = next(run.answers for run in best.runs if run.seed == 0)
    assert known is not None
    page = section(render(made, tmp_path), "tested")
    for answer in known.worst:
        (first, share), *_ = answer.chances
        mark = " true" if first == answer.label else ""
        told = f"{CLASSES[answer.label]} test example {answer.place} {CLASSES[first]}{mark} {100 * share:.1f} %"
        assert told in text(page)
    assert "<img" not in page


def test_with_the_data_examples_are_shown_with_their_rows(tmp_path: Path) -> None:
    at = split(pictures())
    found = replies(rows(study(tmp_path)), CLASSES, replace(at, test=at.train))
    assert found is not None
    best = the_best(rows(study(tmp_path)))
    known = best and best.runs[0].answers
    assert known
    assert [reply.name for reply in found.worst] == [f"row {10 * answer.place}" for answer in known.worst]
    assert all(reply.picture.startswith("data:image/png") for reply in found.uncertain)


def test_studies_of_earlier_versions_have_no_such_section(tmp_path: Path) -> None:
    made = study(tmp_path)
    old = replace(made, runs=[replace(run, answers=None) for run in made.runs])
    assert 'id="tested"' not in render(old, tmp_path)
