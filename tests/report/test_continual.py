"""The page of class-incremental learning says what the result holds."""

from pathlib import Path

from attar.report.continual import summary, write_continual
from tests.report.applications import stages


def test_the_page_has_scores_curve_matrices_and_stages(tmp_path: Path) -> None:
    page = write_continual(stages(), tmp_path / "p.html").read_text()
    for text in ("Toy set: 5 stages, 10 examples per class in memory", "Forgetting, %", "Test accuracy by stage"):
        assert text in page
    assert page.count("<svg") == 1 + 5
    assert "class 0, class 1" in page
    assert "<code>attar continual toy --stages 5</code>" in page


def test_the_best_is_chosen_on_validation_and_the_full_data_is_no_candidate() -> None:
    found = stages()
    for run in found.runs:
        if run.method == "dm":
            run.validation[:] = [[0.99] * len(row) for row in run.validation]
        if run.method == "full":
            run.validation[:] = [[1.0] * len(row) for row in run.validation]
    assert "the memory of dm has the highest mean accuracy" in summary(found)


def test_a_single_seed_has_no_interval(tmp_path: Path) -> None:
    page = write_continual(stages(seeds=1), tmp_path / "p.html").read_text()
    assert "±" not in page.partition("<tbody>")[2].partition("</tbody>")[0]
