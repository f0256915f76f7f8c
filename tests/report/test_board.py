import re
from dataclasses import replace
from pathlib import Path

import attar
from attar.board import Results
from attar.board.score import summarised
from attar.report.board import COLUMNS, RULES, cells, render
from tests.board.boards import board, problem
from tests.report.reading import text


def test_every_score_is_a_row_with_every_column(tmp_path: Path) -> None:
    results = Results.read(board(tmp_path))
    page = render(results)
    body = page.partition("<tbody>")[2].partition("</tbody>")[0]
    assert body.count("<tr") == len(results.scores)
    for score in results.scores:
        assert len(cells(results, score)) == len(COLUMNS)
    assert page.count('aria-sort="none"') == len(COLUMNS)


def test_gains_and_orders_are_those_of_the_intervals(tmp_path: Path) -> None:
    results = Results.read(board(tmp_path))
    shown = {score.method: cells(results, score)[4] for score in results.of("digits", 1)}
    assert shown["uniform"].shown == "–"
    assert shown["dm"].shown.startswith("+20.2 ± ")
    assert shown["dm"].note == "above"
    assert shown["herding"].note == "not distinguishable"


def test_the_divergence_of_a_model_s_posterior_is_shown(tmp_path: Path) -> None:
    results = Results.read(board(tmp_path))
    (score,) = (score for score in results.of("digits", 1) if score.method == "dm")
    far = {"kl": 1.5, "reverse_kl": 2.0, "w2": 0.25}
    judged = replace(score, runs=[replace(run, divergence=far) for run in score.runs])
    assert cells(results, judged)[11].note == "posterior: KL 1.50, W2 0.25"
    assert cells(results, score)[11].note == ""


def test_the_page_has_the_rules_and_says_what_problems_fix(tmp_path: Path) -> None:
    page = text(render(Results.read(board(tmp_path))))
    for rule in RULES:
        assert rule.replace("`", "") in page
    assert "longer training might still gain" in page
    assert "3 steps of at most 32 examples, 1 network" in page
    assert "none yet" in page


def test_text_from_files_is_escaped_and_only_our_script_may_run(tmp_path: Path) -> None:
    page = render(Results.read(board(tmp_path)))
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert len(re.findall("<script", page)) == 1
    assert re.search("script-src &#39;sha256-[A-Za-z0-9+/=]{44}&#39;", page)


def test_sets_without_a_cost_are_not_in_the_chart(tmp_path: Path) -> None:
    page = render(Results.read(board(tmp_path)))
    figures = re.findall(r'<figure class="titled" data-problem="([^"]+)"', page)
    assert figures == ["digits", "digits-wide"]
    assert "theirs, 1 per class:" not in page
    assert "dm, 1 per class: 70.4\u00a0±" in page


def test_a_board_without_scores_is_a_page_too(tmp_path: Path) -> None:
    problem(tmp_path)
    assert attar.board(tmp_path, tmp_path / "b.html").exists()
    assert "0 scores on 1 problem" in (tmp_path / "b.html").read_text()


def test_what_older_files_do_not_have_is_a_dash_and_newer_ones_show_it(tmp_path: Path) -> None:
    results = Results.read(board(tmp_path))
    (old,) = (score for score in results.of("digits", 1) if score.method == "dm")
    places = [place for place, column in enumerate(COLUMNS) if column.name.startswith(("Worst", "Majority", "Floor"))]
    assert [cells(results, old)[place].shown for place in places] == ["–", "–", "–"]
    runs = [replace(run, worst=0.25, majority=0.1) for run in old.runs]
    new = replace(old, runs=runs, **summarised(runs, 0.5))
    full = {"digits": replace(results.references["digits"], floor=0.0126)}
    shown = [cells(replace(results, references=full), new)[place].shown for place in places]
    assert shown == ["25.0 ± 0.0", "10.0 ± 0.0", "0.013"]
    assert "0.013 from all data with another seed" in render(replace(results, references=full))
