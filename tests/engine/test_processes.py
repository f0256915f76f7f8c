import os
import signal
import time
import warnings
from multiprocessing import active_children
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest
import torch

from attar.core.errors import AttarError
from attar.engine import Engine, processes, run_all
from tests.known import HANG, python, wait_until

TWO = Engine(workers=2)


def double(shared: torch.Tensor, job: int) -> tuple[int, int, bool]:
    return int(shared.sum()) + 2 * job, os.getpid(), shared.is_shared()


def fail(shared: None, job: int) -> int:
    raise AttarError(f"job {job} cannot be done: leave it out.")


def test_local_workers_are_other_processes_with_one_copy_of_the_data_and_give_the_same_results() -> None:
    shared = torch.ones(3)
    results = dict(run_all(double, shared, [1, 2, 3], TWO))
    assert {job: value for job, (value, *_) in results.items()} == {1: 5, 2: 7, 3: 9}
    assert os.getpid() not in {pid for _, pid, _ in results.values()}
    assert shared.is_shared()
    assert all(there for *_, there in results.values())


def test_what_a_worker_raises_reaches_the_caller() -> None:
    with pytest.raises(AttarError, match="job 1 cannot be done"):
        list(run_all(fail, None, [1], TWO))


def warn(shared: None, job: int) -> int:
    warnings.warn(f"job {job}", RuntimeWarning, stacklevel=1)
    return job


def test_what_a_worker_warns_of_reaches_the_caller() -> None:
    with pytest.warns(RuntimeWarning, match="job") as said:
        assert dict(run_all(warn, None, [1, 2], TWO)) == {1: 1, 2: 2}
    assert sorted(str(warning.message) for warning in said) == ["job 1", "job 2"]


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
    monkeypatch.setattr(processes, "GRACE", 0.1)
    before = set(active_children())
    results = run_all(rest, tmp_path, [0, 1, 2, 3], TWO)
    assert next(results) == (0, 0)
    results.close()  # type: ignore[attr-defined]
    wait_for_only(before)
    assert not list(tmp_path.iterdir())


def say_and_rest(shared: None, job: int) -> None:
    print(job, flush=True)
    time.sleep(2 * HANG)


def test_workers_end_with_a_parent_that_is_killed() -> None:
    run = python(
        "from attar.engine import Engine, run_all\nfrom tests.engine.test_processes import say_and_rest\n"
        "list(run_all(say_and_rest, None, [1, 1], Engine(workers=2)))"
    )
    assert run.stdout is not None
    assert [run.stdout.readline() for _ in range(2)] == ["1\n"] * 2
    run.kill()
    run.communicate(timeout=HANG)  # the pipes stay open as long as any worker has them


def rest_or_fail(folder: Path, job: int) -> int:
    return rest(folder, job) if job else fail(None, job)


def test_one_failure_ends_the_other_jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "GRACE", 0.1)
    before = set(active_children())
    with pytest.raises(AttarError, match="job 0 cannot be done"):
        list(run_all(rest_or_fail, tmp_path, [1, 0, 2], TWO))
    wait_for_only(before)
    assert not list(tmp_path.iterdir())


def die(folder: Path, job: tuple[int, int]) -> tuple[int, int]:
    """Leave a mark at every try, and be killed at the first ones."""
    number, deaths = job
    tries = len(list(folder.glob(f"{number}-*"))) + 1
    (folder / f"{number}-{tries}").write_text(str(os.getpid()))
    if tries <= deaths:
        os.kill(os.getpid(), signal.SIGKILL)
    return number, os.getpid()


def test_the_job_of_a_killed_worker_is_run_again_in_another_and_the_others_go_on(tmp_path: Path) -> None:
    with pytest.warns(RuntimeWarning, match=r"ended from outside \(signal 9\).*another one goes on with its job"):
        done = dict(run_all(die, tmp_path, [(0, 0), (1, 1), (2, 0)], TWO))
    assert {number for number, _ in done.values()} == {0, 1, 2}
    tries = {number: [path.read_text() for path in sorted(tmp_path.glob(f"{number}-*"))] for number in range(3)}
    assert [len(tries[number]) for number in range(3)] == [1, 2, 1]
    assert tries[1][0] != tries[1][1] == str(done[1, 1][1])


@pytest.mark.filterwarnings("ignore:A worker process was ended")
def test_a_job_whose_workers_are_always_killed_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "RETRIES", 1)
    before = set(active_children())
    with pytest.raises(
        AttarError, match=r"ended from outside 2 times in one job.*fewer workers; finished work is kept"
    ):
        list(run_all(die, tmp_path, [(0, 9)], TWO))
    assert len(list(tmp_path.iterdir())) == 2
    wait_for_only(before)


def leave(shared: None, job: int) -> None:
    os._exit(3)


def test_a_worker_that_ends_by_itself_is_not_started_again() -> None:
    with pytest.raises(AttarError, match="A worker process was ended"):
        list(run_all(leave, None, [1], TWO))


def no_result(shared: None, job: int) -> object:
    return lambda: job


def test_a_result_that_cannot_be_sent_is_an_error_and_not_the_end_of_a_worker() -> None:
    with pytest.raises(RuntimeError, match="cannot be sent"):
        list(run_all(no_result, None, [1], TWO))


ABANDON = """
from pathlib import Path
from tests.engine.test_processes import TWO, processes, rest, run_all
processes.GRACE = 0.1
kept = run_all(rest, Path(), [0, 1], TWO)
print(next(kept))
"""


def test_a_program_that_leaves_jobs_undone_ends() -> None:
    """The interpreter waits for all processes at its end, so they must be ended before."""
    out, _ = python(ABANDON).communicate(timeout=HANG)
    assert out == "(0, 0)\n"
