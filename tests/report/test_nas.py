"""The page of an architecture search says what the result holds."""

from pathlib import Path

from attar.report.nas import summary, write_nas
from tests.report.applications import search


def test_the_page_has_correlations_scatters_ranks_and_what_failed(tmp_path: Path) -> None:
    page = write_nas(search(), tmp_path / "p.html").read_text()
    for text in ("a search over 12 networks", "Correlation", "Top 10", "early-stopping", "uniform (random)"):
        assert text in page
    assert page.count("<svg") == 3
    assert "try &lt;b&gt;less&lt;/b&gt;." in page


def test_the_summary_names_the_choice_of_the_full_data() -> None:
    found = search()
    best = max(found.reference(), key=lambda trial: trial.validation or 0)
    assert f"The full data chooses {best.network}" in summary(found)
