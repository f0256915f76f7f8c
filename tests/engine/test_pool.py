import os
import time
import warnings
from multiprocessing import active_children
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest
import torch

from attar.core.errors import AttarError
from attar.engine import pool, run_all
from tests.known import HANG, python, wait_until


def double(shared: torch.Tensor, job: int) -> tuple[int, int]:
    return int(shared.sum()) + 2 * job, os.getpid()


def fail(shared: None, job: int) -> int:
    raise AttarError(f"job {job} cannot be done: leave it out.")


def test_one_worker_runs_here_and_in_order() -> None:
    results = list(run_all(double, torch.ones(3), [1, 2, 3]))
    assert [(job, value) for job, (value, _) in results] == [(1, 5), (2, 7), (3, 9)]
    assert {pid for _, (_, pid) in results} == {os.getpid()}


def test_local_workers_are_other_processes_and_give_the_same_results() -> None:
    results = dict(run_all(double, torch.ones(3), [1, 2, 3], workers=2))
    assert {job: value for job, (value, _) in results.items()} == {1: 5, 2: 7, 3: 9}
    assert os.getpid() not in {pid for _, pid in results.values()}


def test_what_a_worker_raises_reaches_the_caller() -> None:
    with pytest.raises(AttarError, match="job 1 cannot be done"):
        list(run_all(fail, None, [1], workers=2))


def warn(shared: None, job: int) -> int:
    warnings.warn(f"job {job}", RuntimeWarning, stacklevel=1)
    return job


def test_what_a_worker_warns_of_reaches_the_caller() -> None:
    with pytest.warns(RuntimeWarning, match="job") as said:
        assert dict(run_all(warn, None, [1, 2], workers=2)) == {1: 1, 2: 2}
    assert sorted(str(warning.message) for warning in said) == ["job 1", "job 2"]


def test_no_workers_is_an_error() -> None:
    with pytest.raises(AttarError, match="at least 1"):
        run_all(double, torch.ones(1), [1], workers=0)


def rest(folder: Path, job: int) -> int:
    """Job 0 is done at once. The others leave a file, but only after so long that they must have been waited for."""
    if job:
        time.sleep(HANG)
        (folder / str(job)).touch()
    return job


def wait_for_only(before: set[BaseProcess]) -> None:
    """Until no other child is left; two threads reap them, so for a moment one may look alive that is not."""
    wait_until(lambda: set(active_children()) <= before)


def test_work_that_nobody_waits_for_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "GRACE", 0.1)
    before = set(active_children())
    results = run_all(rest, tmp_path, [0, 1, 2, 3], workers=2)
    assert next(results) == (0, 0)
    results.close()  # type: ignore[attr-defined]
    wait_for_only(before)
    assert not list(tmp_path.iterdir())


def say_and_rest(shared: None, job: int) -> None:
    print(job, flush=True)
    time.sleep(2 * HANG)


def test_workers_end_with_a_parent_that_is_killed() -> None:
    run = python(
        "from attar.engine import run_all\nfrom tests.engine.test_pool import say_and_rest\n"
        "list(run_all(say_and_rest, None, [1, 1], workers=2))"
    )
    assert run.stdout is not None
    assert [run.stdout.readline() for _ in range(2)] == ["1\n"] * 2
    run.kill()
    run.communicate(timeout=HANG)  # the pipes stay open as long as any worker has them


def rest_or_fail(folder: Path, job: int) -> int:
    return rest(folder, job) if job else fail(None, job)


def test_one_failure_ends_the_other_jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "GRACE", 0.1)
    before = set(active_children())
    with pytest.raises(AttarError, match="job 0 cannot be done"):
        list(run_all(rest_or_fail, tmp_path, [1, 0, 2], workers=2))
    wait_for_only(before)
    assert not list(tmp_path.iterdir())


@pytest.mark.filterwarnings("ignore")  # of ray itself
def test_ray_gives_the_same_results(monkeypatch: pytest.MonkeyPatch) -> None:
    ray = pytest.importorskip("ray", reason="ray is an extra: pip install 'attar[ray]'")
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    # The workers must be able to import this test's module, which only the test runner knows the path of.
    ray.cloudpickle.register_pickle_by_value(__import__("sys").modules[double.__module__])
    results = dict(run_all(double, torch.ones(3), [1, 2], workers=2, where="ray"))
    assert {job: value for job, (value, _) in results.items()} == {1: 5, 2: 7}
    assert not ray.is_initialized()
