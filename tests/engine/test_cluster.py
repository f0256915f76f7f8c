"""Jobs on Ray: one copy of the data on each node, and the results of the local run, whichever node is lost."""

import os
import signal
import socket
import threading
import time
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import attar
from attar.condense.driver import Step
from attar.core.cost import Cost
from attar.core.errors import AttarError
from attar.coreset import Coreset
from attar.engine import cluster
from attar.engine.pool import LOCAL, Engine, run_all
from attar.experts import Schedule
from attar.select.large.work import Done, Task, Todo
from attar.select.large.work import work as real
from attar.study import Study, StudySpec
from attar.study.runner import run_study
from tests.continual.sets import spec as staged
from tests.continual.sets import split as sets
from tests.engine.test_pool import threads
from tests.engine.test_processes import die
from tests.known import HANG, digits, new_python, wait_until
from tests.tables import parquet

selecting = import_module("attar.select.large.run")  # the package has a function of this name

SHARED = {
    "images": torch.arange(24.0).view(2, 3, 4),
    "half": torch.ones(3, dtype=torch.bfloat16),
    "yes": torch.tensor([True, False]),
    "one": torch.tensor(7),
    "none": torch.zeros(0, 3),
    "turned": torch.arange(6).view(2, 3).T,
    "learnt": torch.ones(2, requires_grad=True),
    "array": np.asfortranarray(np.arange(6).reshape(2, 3)),
    "name": "digits",
}


def test_what_is_packed_comes_back_without_a_copy_and_without_a_warning() -> None:
    pytest.importorskip("ray", reason="ray is an extra: pip install 'attar[ray]'")
    twice = {**SHARED, "again": SHARED["images"]}
    pickled, buffers = cluster.pack(twice)
    for buffer in buffers:
        buffer.flags.writeable = False  # as Ray gives them back
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = cluster.unpack((pickled, buffers))
    for name, value in SHARED.items():
        got = found[name]
        if isinstance(value, torch.Tensor):
            assert torch.equal(got, value)
            assert (got.dtype, got.stride(), got.requires_grad) == (value.dtype, value.stride(), value.requires_grad)
        else:
            assert np.array_equal(got, value)
    whole = SHARED["images"]
    assert isinstance(whole, torch.Tensor)
    assert found["images"].data_ptr() == whole.data_ptr()  # the memory of the tensor itself: nothing was copied
    assert found["again"] is found["images"]
    assert len(pickled) < 4096


def test_data_on_a_gpu_that_jobs_cannot_see_is_refused() -> None:
    pytest.importorskip("ray", reason="ray is an extra: pip install 'attar[ray]'")
    with pytest.raises(AttarError, match=r"on meta, and Ray shows no GPU .* --gpus-per-job 1"):
        cluster.pack({"x": torch.zeros(3, device="meta")})


RAY = """
import os
import sys
import warnings
from pathlib import Path
os.cpu_count = lambda: 6
import torch
from attar.core.cost import Cost
from attar.core.errors import AttarError
from attar.engine import Engine, run_all
from tests.engine.test_cluster import double_on_ray
from tests.engine.test_pool import threads
from tests.select.large.test_run import parquet, pick, same
source = parquet(Path(sys.argv[1]))
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    running = run_all(double_on_ray, torch.tensor([3]), [1, 2], Engine("ray", 2))
    found = [next(running)]  # others use the cluster that it has started
    local = sorted(run_all(threads, None, [1, 2], Engine("local", 2)))
    picks = pick(source, "craig", size=12, workers=2, engine="ray"), pick(source, "craig", size=12)
    try:
        list(run_all(double_on_ray, torch.tensor([3]), [1, 2], Engine("ray", gpus_per_job=64)))
    except AttarError as error:
        refused = str(error)
    found += running
print(sorted(found))
print(sorted(str(warning.message) for warning in said if "job" in str(warning.message)))
print(local)
print(refused)
print(same(*picks))
import ray
assert not ray.is_initialized()
"""


def double_on_ray(shared: torch.Tensor, job: int) -> tuple[int, str, str | None, int]:
    import ray

    warnings.warn(f"job {job}", stacklevel=1)
    address, mode = ray.util.get_node_ip_address(), os.environ.get("RAY_AUTH_MODE")
    return int(shared) + 2 * job, address, mode, torch.get_num_threads()


def test_ray_gives_the_same_results_on_the_loopback_address_behind_a_token(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("ray", reason="ray is an extra: pip install 'attar[ray]'")
    for name in [name for name in os.environ if name.startswith("RAY_")]:
        monkeypatch.delenv(name)
    out, err = new_python(RAY, tmp_path).communicate(timeout=HANG)
    own = ("127.0.0.1", "token", 3)  # with as many threads as local workers
    results, said, local, refused, selected = out.splitlines()
    assert results == f"{[(1, (5, *own)), (2, (7, *own))]}", err
    assert said == "['job 1', 'job 2']"
    assert local == "[(1, 3), (2, 3)]"
    assert refused.startswith("No node of the cluster has 64 GPUs (the most is ")
    assert selected == "True"  # a selection from a table has the same bits


ASKED = """
import os
os.cpu_count = lambda: 6
from attar.engine import Engine, run_all
from tests.engine.test_pool import threads
print(sorted(run_all(threads, None, [1, 2], Engine("ray", 2, cpus_per_job=4))))
"""


@pytest.mark.slow
def test_jobs_on_ray_have_the_threads_that_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ray", reason="ray is an extra: pip install 'attar[ray]'")
    for name in [name for name in os.environ if name.startswith("RAY_")]:
        monkeypatch.delenv(name)
    out, err = new_python(ASKED).communicate(timeout=HANG)
    assert out.strip() == f"{[(1, 4), (2, 4)]}", err


@pytest.mark.parametrize("name", ["attar", "torch", "numpy", "Python"])
def test_a_node_must_have_the_versions_of_the_one_that_asks(name: str) -> None:
    other = cluster._Driver({**cluster.versions(), name: "0.1"}, Path.cwd(), {}, 1)
    with pytest.raises(AttarError, match=f"has {name} [0-9].*, but 0.1 asks: install the same versions on all nodes"):
        other.settle()


def test_what_the_user_says_about_tokens_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("RAY_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    monkeypatch.setenv("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "1")
    cluster._keep_local()
    assert os.environ["RAY_AUTH_MODE"] == "disabled"
    assert "RAY_AUTH_TOKEN" not in os.environ
    assert os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] == "1"


# A real cluster, whose first node has one processor; tests add the second, and kill it.

of_ray = pytest.mark.filterwarnings("ignore")  # of ray itself


def ports() -> dict[str, int]:
    """Free ports for the helpers of a node; where they choose, Ray waits for 15 seconds only."""
    names = ("metrics_agent_port", "metrics_export_port", "dashboard_agent_listen_port", "runtime_env_agent_port")
    open_ones = [socket.create_server(("127.0.0.1", 0)) for _ in names]
    found = [one.getsockname()[1] for one in open_ones]
    for one in open_ones:
        one.close()
    return dict(zip(names, found, strict=True))


@pytest.fixture(scope="module")
def head() -> Iterator[Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("RAY_ADDRESS", raising=False)
        cluster._keep_local()  # before the import
        clusters = pytest.importorskip("ray.cluster_utils", reason="ray is an extra: pip install 'attar[ray]'")
        made = clusters.Cluster(
            initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False, **ports()}
        )
        yield made
        made.shutdown()


class Loss:
    """A second node, which is killed as soon as a job on it says that it is in the middle.

    Args:
        head: The cluster.
        folder: Where jobs and the test speak to each other.
    """

    def __init__(self, head: Any, folder: Path) -> None:
        self.head, self.folder = head, folder
        self.node = head.add_node(num_cpus=1, **ports())
        (folder / "victim").write_text(self.node.node_id)
        self.engine = Engine("ray", address=head.address)

    def __enter__(self) -> Engine:
        self.thread = threading.Thread(target=self._kill)
        self.thread.start()
        return self.engine

    def __exit__(self, *_: object) -> None:
        (self.folder / "middle").touch()  # if it has not come so far, do not wait
        self.thread.join()

    def _kill(self) -> None:
        wait_until((self.folder / "middle").exists)
        self.head.remove_node(self.node, allow_graceful=False)


def lost_in_the_middle(folder: Path, job: str) -> None:
    """On the node that will be killed, say so and wait for it; on the other, wait until that job has begun."""
    import ray

    here = ray.get_runtime_context().get_node_id()
    if here == (folder / "victim").read_text():
        (folder / "lost").write_text(job)
        (folder / "middle").touch()
        time.sleep(HANG)
    wait_until((folder / "middle").exists)


def losing(steps: Iterable[Step], folder: Path) -> Iterator[Step]:
    """An observer that notes the first step that it sees, and is lost at the third."""
    first = True
    for step in steps:
        if first:
            (folder / f"first-{time.time_ns()}").write_text(str(step.number))
            first = False
        if step.number == 3:
            lost_in_the_middle(folder, "steps")
        yield step


SPEC = StudySpec(
    methods=("dm",), per_class=1, seeds=(0, 1), training=attar.Training(steps=15, batch=64), draws=1, converged=False,
    network="mlp-d1w8", baselines=False,
).stepped(6)  # fmt: skip


def figures(study: Study, folder: Path) -> list[Any]:
    """All that does not depend on where and how fast a study was made."""
    made = [Coreset.load(folder / str(run.coreset)).data.x for run in study.runs]
    return [
        [replace(run, reduce_cost=Cost(), infer_cost=Cost()) for run in study.runs],
        [x.numpy().tobytes() for x in made],
    ]


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    folder = tmp_path_factory.mktemp("local")
    return figures(run_study(SPEC, digits(), folder, command=""), folder)


@of_ray
@pytest.mark.slow
def test_a_comparison_that_loses_a_node_is_that_of_one_process_to_the_bit(
    head: Any, local: list[Any], tmp_path: Path
) -> None:
    notes, folder = tmp_path / "notes", tmp_path / "study"
    notes.mkdir()
    with Loss(head, notes) as engine:
        watching = [partial(losing, folder=notes)]
        study = run_study(SPEC, digits(), folder, command="", engine=engine, observers=watching, checkpoint_every=0)
    assert (notes / "lost").exists()
    first = [int(path.read_text()) for path in sorted(notes.glob("first-*"))]
    assert first[:2] == [1, 1]
    assert [number >= 3 for number in first[2:]] == [True]  # the lost job, from its checkpoint
    assert figures(study, folder) == local


def lost_part(task: Task, todo: Todo, folder: Path) -> Done:
    (turn,) = todo.turns
    (folder / f"job-{turn.number}-{time.time_ns()}").touch()
    lost_in_the_middle(folder, str(turn.number))
    return real(task, todo)


def picked(source: str, engine: Engine = LOCAL) -> list[Any]:
    asked: dict[str, Any] = {"features": "emb", "label": "y", "id": "key", "size": 12, "part": 128}
    found = attar.select(source, "craig", training=attar.Training(steps=20), engine=engine, **asked)
    assert found.weights is not None
    return [found.rows, *(x.numpy().tobytes() for x in (found.indices, found.scores, found.weights))]


@of_ray
@pytest.mark.slow
def test_a_selection_that_loses_a_node_is_that_of_one_process_to_the_bit(
    head: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, notes = parquet(tmp_path), tmp_path / "notes"
    notes.mkdir()
    whole = picked(source)
    with Loss(head, notes) as engine:
        monkeypatch.setattr(selecting, "work", partial(lost_part, folder=notes))
        found = picked(source, engine)
    lost = (notes / "lost").read_text()
    tries = {number: len(list(notes.glob(f"job-{number}-*"))) for number in range(9)}
    assert tries == {number: 2 if str(number) == lost else 1 for number in range(9)}
    assert found == whole


@of_ray
@pytest.mark.slow
def test_stages_experts_and_draws_of_a_cluster_are_those_of_one_process_to_the_bit(head: Any, tmp_path: Path) -> None:
    found = []
    for engine in (Engine(cpus_per_job=1), Engine("ray", address=head.address)):
        stages = attar.continual(
            staged(methods=("dm",), descent={"dm": {"steps": 3}}), data=sets(), folder=tmp_path / engine.where,
            engine=engine,
        )  # fmt: skip
        schedule = Schedule(2, 1, attar.Training(batch=64))
        store = attar.experts(
            digits().train[:200], "mlp-d1w8", schedule, folder=tmp_path / f"{engine.where}-experts", engine=engine
        )
        draws = attar.infer(
            digits().train[:200], draws=3, network="convnet-d1w16", training=attar.Training(steps=3), engine=engine
        )
        vectors = [store.vector(number, store.epochs) for number in range(2)]
        found.append(
            (
                [(run.method, run.validation, run.test) for run in stages.runs],
                [x.numpy().tobytes() for x in (*vectors, draws.theta)],
            )
        )
    assert found[0] == found[1]


DRIVER = """
import sys
from functools import partial
from pathlib import Path
from attar.engine import Engine
from attar.study.runner import run_study
from tests.engine.test_cluster import SPEC, losing
from tests.known import digits
address, notes, folder = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
watching = [partial(losing, folder=notes)]
engine = Engine("ray", address=address)
run_study(SPEC, digits(), folder, command="", engine=engine, observers=watching, checkpoint_every=0)
"""


@of_ray
@pytest.mark.slow
def test_a_comparison_whose_own_process_was_killed_goes_on_from_its_checkpoints(
    head: Any, local: list[Any], tmp_path: Path
) -> None:
    notes, folder = tmp_path / "notes", tmp_path / "study"
    notes.mkdir()
    (notes / "victim").write_text(head.head_node.node_id)
    driver = new_python(DRIVER, head.address, notes, folder)
    wait_until((notes / "lost").exists)
    driver.send_signal(signal.SIGKILL)
    driver.communicate(timeout=HANG)
    (notes / "victim").write_text("none")
    study = run_study(
        SPEC, digits(), folder, command="", engine=Engine("ray", address=head.address), checkpoint_every=0,
        observers=[partial(losing, folder=notes)],
    )  # fmt: skip
    first = [int(path.read_text()) for path in sorted(notes.glob("first-*"))]
    assert [number >= 3 for number in first] == [False, True, False]
    assert figures(study, folder) == local


@of_ray
@pytest.mark.slow
def test_a_job_of_a_running_cluster_has_one_thread_and_as_many_processors_as_it_asks_for(head: Any) -> None:
    assert dict(run_all(threads, None, [1], Engine("ray", address=head.address))) == {1: 1}
    with pytest.raises(AttarError, match=r"No node of the cluster has 3 processors \(the most is 1\): ask for fewer"):
        list(run_all(threads, None, [1], Engine("ray", address=head.address, cpus_per_job=3)))


@of_ray
@pytest.mark.slow
def test_the_job_of_a_killed_worker_is_run_again_twice_at_most(head: Any, tmp_path: Path) -> None:
    engine = Engine("ray", address=head.address)
    done = dict(run_all(die, tmp_path, [(0, 0), (1, 2)], engine))
    assert {number for number, _ in done.values()} == {0, 1}
    assert len({path.read_text() for path in tmp_path.glob("1-*")}) == 3
    with pytest.raises(AttarError, match=r"A worker of Ray was lost 3 times in one job \(.*finished work is kept"):
        list(run_all(die, tmp_path, [(2, 9)], engine))
    assert len(list(tmp_path.glob("2-*"))) == 3


def rest(shared: None, job: int) -> None:
    time.sleep(HANG)


@of_ray
@pytest.mark.slow
def test_a_node_out_of_memory_is_one_sentence(head: Any) -> None:
    """A job on each node; that on the second is ended as soon as it runs, because any memory is too much."""
    scarce = {"RAY_memory_usage_threshold": "0.001", "RAY_memory_monitor_refresh_ms": "100"}
    node = head.add_node(num_cpus=1, **ports(), env_vars=scarce)
    try:
        with pytest.raises(AttarError, match=r"lost 3 times in one job \(.*low on memory.*: check memory and disk"):
            list(run_all(rest, None, [1, 2], Engine("ray", address=head.address)))
    finally:
        head.remove_node(node)


def nothing(shared: Any, job: int) -> int:
    return job


def large(shared: Any, job: int) -> Tensor:
    return torch.zeros(2**25)


@of_ray
@pytest.mark.slow
@pytest.mark.parametrize(("work", "size"), [(nothing, 2**25), (large, 0)])
def test_a_node_out_of_disk_is_one_sentence(work: Any, size: int) -> None:
    """A node with little memory for objects, which may not use its disk: neither data nor results of 128 MB fit."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("RAY_ADDRESS", raising=False)
        cluster._keep_local()
        clusters = pytest.importorskip("ray.cluster_utils", reason="ray is an extra: pip install 'attar[ray]'")
        full = {"object_store_memory": 80 * 2**20, "env_vars": {"RAY_local_fs_capacity_threshold": "0.0001"}}
        made = clusters.Cluster(
            initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False, **full, **ports()}
        )
        try:
            with pytest.raises(
                AttarError, match=r"^A node of Ray has no room .*: free some of the disk, .* is kept\.$"
            ):
                list(run_all(work, torch.zeros(size), [1], Engine("ray", address=made.address)))
        finally:
            made.shutdown()


@of_ray
@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("attar-9.9.dist-info/METADATA", "has attar 9.9, but .* asks: install the same versions on all nodes"),
        ("attar/__init__.py", "A node of the cluster lacks attar, or has another version: install attar"),
    ],
)
def test_a_node_with_another_version_is_one_sentence(head: Any, file: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / file
    path.parent.mkdir()
    path.write_text("Metadata-Version: 2.1\nName: attar\nVersion: 9.9\n" if "METADATA" in file else "")
    search = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    node = head.add_node(num_cpus=4, **ports(), env_vars={"PYTHONPATH": search})
    try:
        with pytest.raises(AttarError, match=message):
            list(run_all(nothing, None, [1, 2, 3, 4, 5], Engine("ray", address=head.address)))
    finally:
        head.remove_node(node)
