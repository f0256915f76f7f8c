from attar.study import StudySpec
from attar.study.grid import Job, grid


def test_the_grid_adds_random_subset_selection_and_full_data() -> None:
    jobs = grid(StudySpec(methods="dm", per_class=[1, 2], seeds=[0, 1]))
    assert {(job.method, job.per_class) for job in jobs} == {
        (name, size) for name in ("uniform", "herding", "dm") for size in (1, 2)
    } | {("full", None), ("full-converged", None)}
    assert len(jobs) == len({job.key for job in jobs}) == 16
    short = grid(StudySpec(methods="dm", converged=False))
    assert "full" in {job.method for job in short}
    assert "full-converged" not in {job.method for job in short}
    assert {job.method for job in grid(StudySpec(methods="dm", baselines=False))} == {"dm"}


def test_a_baseline_that_is_asked_for_stands_there_once() -> None:
    jobs = grid(StudySpec(methods=["herding", "dm"], per_class=1, seeds=0))
    assert [job.method for job in jobs] == ["uniform", "herding", "dm", "full", "full-converged"]


def test_the_key_of_a_cell_is_a_file_name() -> None:
    assert Job("cafe+dsa", 10, 3).key == "cafe+dsa-10-3"
    assert Job("full", None, 3).key == "full-all-3"
