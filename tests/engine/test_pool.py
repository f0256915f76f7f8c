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


RAY = """
import os
from attar.engine import run_all
from tests.engine.test_pool import double_on_ray
print(sorted(run_all(double_on_ray, 3, [1, 2], workers=2, where="ray")))
import ray
assert not ray.is_initialized()
"""


def double_on_ray(shared: int, job: int) -> tuple[int, str, str | None]:
    import ray

    return shared + 2 * job, ray.util.get_node_ip_address(), os.environ.get("RAY_AUTH_MODE")


def test_ray_gives_the_same_results_on_the_loopback_address_behind_a_token(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ray", reason="ray is an extra: pip install 'attar[ray]'")
    for name in [name for name in os.environ if name.startswith("RAY_")]:
        monkeypatch.delenv(name)
    out, err = python(RAY).communicate(timeout=HANG)
    own = ("127.0.0.1", "token")
    assert out == f"{[(1, (5, *own)), (2, (7, *own))]}\n", err


def test_what_the_user_says_about_tokens_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("RAY_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    monkeypatch.setenv("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "1")
    pool._keep_local()
    assert os.environ["RAY_AUTH_MODE"] == "disabled"
    assert "RAY_AUTH_TOKEN" not in os.environ
    assert os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] == "1"
