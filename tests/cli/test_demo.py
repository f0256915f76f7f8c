"""`attar demo`: what it says in a sentence, and that it is the study it promises."""

from dataclasses import replace
from pathlib import Path

from attar.cli.demo import DEMO, verdict
from attar.study.grid import grid
from tests.report.studies import study as made_up


def test_the_demo_s_winner_is_chosen_by_validation_and_told_by_test(tmp_path: Path) -> None:
    made = made_up(tmp_path, ["uniform", "dm", "bpc-cd", "full"], seeds=2)
    told = {"uniform": (0.4, 0.3), "dm": (0.5, 0.91), "bpc-cd": (0.8, 0.62), "full": (0.9, 0.97)}
    runs = [
        replace(
            run,
            method=run.method.replace("bpc-cd", "dc"),
            validation=replace(run.validation, accuracy=told[run.method][0]),
            test=replace(run.test, accuracy=told[run.method][1]),
        )
        for run in made.runs
    ]
    said = verdict(replace(made, runs=runs))
    assert said.startswith(
        "Trained on ten learnt digits (dc), networks classify 62% of the test digits correctly; on ten random"
    )
    assert said.endswith("digits 30%; on all 3,000 training digits 97%.")


def test_the_demo_learns_ten_digits_with_two_methods_beside_the_baselines() -> None:
    assert {(job.method, job.per_class) for job in grid(DEMO)} == {
        ("uniform", 1), ("herding", 1), ("dm", 1), ("dc", 1), ("full", None), ("full-converged", None)
    }  # fmt: skip
    assert DEMO.descent == {"dm": {"steps": 100}, "dc": {"steps": 100}}
    assert DEMO.load_data().spec.name == "digits"
