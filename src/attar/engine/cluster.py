"""Jobs on a Ray cluster, whose nodes hold one copy each of what all jobs need."""

from __future__ import annotations

import io
import os
import pickle
import secrets
import socket
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from platform import python_version
from types import ModuleType
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch
from torch import Tensor

from attar.core.errors import AttarError, require
from attar.engine.job import RETRIES, Said, heard, repeat, threads_of

Job = TypeVar("Job")
Result = TypeVar("Result")
Shared = TypeVar("Shared")

PATIENCE = 30.0  #: seconds for a cluster to answer


def on_ray(
    work: Callable[[Shared, Job], Result],
    shared: Shared,
    jobs: Sequence[Job],
    workers: int,
    address: str | None,
    gpus: float,
    cpus: int | None,
) -> Iterator[tuple[Job, Result]]:
    """Run the jobs on a cluster; Ray runs those of a killed worker or node again elsewhere.

    A job has as many threads as processors: those of local workers, unless the cluster already runs.
    """
    cluster = address or os.environ.get("RAY_ADDRESS")
    if not cluster:
        _keep_local()
    os.environ.setdefault("RAY_task_oom_retries", str(RETRIES))  # for ever, if Ray is left to itself
    ray = require("ray", "ray")
    started = not ray.is_initialized()
    each = cpus or (threads_of(workers) if started and not cluster else 1)
    if started:
        _start(ray, cluster, workers * each)
    pending: dict[Any, Job] = {}
    try:
        _require(ray, "CPU", "processors", cpus or 0)
        _require(ray, "GPU", "GPUs", gpus)
        both = ray.put(pack((work, shared), gpus))
        task = ray.remote(_call).options(num_cpus=each, num_gpus=gpus, max_retries=RETRIES)
        here = _Driver(versions(), Path.cwd(), _own_environment(), each)
        pending = {task.remote(tuple(here), both, pack(job, gpus)): job for job in jobs}
        while pending:
            (done,), _ = ray.wait(list(pending), num_returns=1)
            result, said = _result(ray, done)
            repeat(said)
            yield pending.pop(done), result
    except (ray.exceptions.OutOfDiskError, ray.exceptions.ObjectStoreFullError) as error:
        raise AttarError(
            "A node of Ray has no room for data or a result, neither in memory nor on its disk: free some of the disk, "
            "or start the node with a larger --object-store-memory, and run again; finished work is kept."
        ) from error
    finally:
        if started:
            ray.shutdown()
        else:
            for left in pending:
                ray.cancel(left)


def _start(ray: ModuleType, cluster: str | None, cpus: int) -> None:
    if cluster:
        _require_reachable(cluster)
    try:
        ray.init(
            cluster or "local",  # without it Ray looks for a cluster that somebody started here
            num_cpus=None if cluster else cpus,
            include_dashboard=False,
            log_to_driver=False,
        )
    except Exception as error:  # Ray raises this class itself where a node does not start in time
        reason = " ".join(str(error).split())[:300]
        raise AttarError(f"Ray does not start ({reason}): check address, versions and load of the nodes.") from error


def _keep_local() -> None:
    """Let a Ray that is started here listen on the loopback address only and ask for a token, unless you say otherwise.

    Ray reads the address and the mode when it is imported; one that your program imported before keeps its own, and
    takes the token. Versions before 2.52 know no tokens.
    """
    os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")  # in spite of its name, on every system
    if not any(name in os.environ for name in ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH")):
        os.environ["RAY_AUTH_TOKEN"] = secrets.token_hex(32)
        if "ray" not in sys.modules:
            os.environ["RAY_AUTH_MODE"] = "token"


def _require_reachable(address: str) -> None:
    """Raise at once if nothing answers at the address of a cluster; Ray itself tries for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdigit():
        return  # a name that Ray itself resolves, such as auto
    try:
        socket.create_connection((host, int(port)), timeout=PATIENCE).close()
    except OSError as error:
        raise AttarError(
            f"No Ray cluster answers at {address} ({error.strerror or error}): check the address, or start one with "
            "`ray start --head`."
        ) from error


def _require(ray: ModuleType, resource: str, name: str, wanted: float) -> None:
    """Raise if no node has so many of a resource; Ray itself waits for one."""
    most = max((node["Resources"].get(resource, 0.0) for node in ray.nodes() if node["Alive"]), default=0.0)
    if wanted > most:
        raise AttarError(f"No node of the cluster has {wanted:g} {name} (the most is {most:g}): ask for fewer per job.")


def _result(ray: ModuleType, reference: Any) -> tuple[Any, Said]:
    """What a task returned; its error as it was raised, and that of a lost node in one sentence."""
    try:
        found: tuple[Any, Said] = ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        if "failed to import on the worker" in str(error):
            raise AttarError(
                f"A node of the cluster lacks attar, or has another version: install attar {version('attar')} on all "
                "nodes."
            ) from error
        raise (error.cause if isinstance(error.cause, Exception) else error) from None
    except ray.exceptions.RayError as error:
        reason = " ".join(str(error).split())[:200]
        raise AttarError(
            f"A worker of Ray was lost {1 + RETRIES} times in one job ({reason}): check memory and disk of its node, "
            "and run again; finished work is kept."
        ) from error
    return found


def versions() -> dict[str, str]:
    """What must be the same on all nodes for the same results."""
    return {"attar": version("attar"), "torch": torch.__version__, "numpy": np.__version__, "Python": python_version()}


class _Driver(NamedTuple):
    """The process that asks, as far as workers on other nodes must agree with it."""

    versions: dict[str, str]
    folder: Path
    environment: dict[str, str]
    threads: int

    def settle(self) -> None:
        """Refuse another version; take as many threads, and go to the same folder, where it exists."""
        for name, found in versions().items():
            if found != (wanted := self.versions.get(name)):
                raise AttarError(
                    f"The node {socket.gethostname()} has {name} {found}, but {wanted} asks: install the same versions "
                    "on all nodes."
                )
        torch.set_num_threads(self.threads)
        os.environ.update(self.environment)
        if self.folder.is_dir():
            os.chdir(self.folder)


def _own_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name.startswith("ATTAR_")}


Packed = tuple[bytes, list[Any]]  #: a pickle, and the buffers of its tensors, which Ray keeps outside


def _call(here: tuple[Any, ...], both: Packed, job: Packed) -> tuple[Any, Said]:
    """One job on any node: nothing of attar is unpickled before its version is known."""
    _Driver(*here).settle()
    work, shared = unpack(both)
    return heard(work, shared, unpack(job))


def pack(value: Any, gpus: float = 0.0) -> Packed:
    """A pickle, and the memory of its tensors as arrays, which Ray keeps once for all workers of a node."""
    buffers: list[Any] = []
    file = io.BytesIO()
    _pickler()(file, buffers, gpus).dump(value)
    return file.getvalue(), [np.asarray(buffer.raw()) for buffer in buffers]


def unpack(packed: Packed) -> Any:
    """The value; its tensors lie in the memory of the buffers and must not be changed."""
    return pickle.loads(packed[0], buffers=packed[1])


def _pickler() -> Any:
    cloudpickle: Any = require("ray.cloudpickle", "ray")

    class Pickler(cloudpickle.CloudPickler):  # type: ignore[misc]
        """Pickles functions of ``__main__``, too, and tensors without copying them."""

        def __init__(self, file: io.BytesIO, buffers: list[Any], gpus: float) -> None:
            super().__init__(file, protocol=5, buffer_callback=buffers.append)
            self.gpus = gpus

        def reducer_override(self, value: Any) -> Any:
            if type(value) is Tensor:
                if value.device.type != "cpu" and not self.gpus:
                    raise AttarError(
                        f"The data is on {value.device}, and Ray shows no GPU to jobs that ask for none: give the GPUs "
                        "per job, such as --gpus-per-job 1."
                    )
                if _plain(value):
                    numbers: Any = value.detach().flatten().view(torch.uint8).numpy()
                    return _tensor, (pickle.PickleBuffer(numbers), value.dtype, tuple(value.shape))
            return super().reducer_override(value)

    return Pickler


def _plain(x: Tensor) -> bool:
    """Whether a tensor is one block of numbers in memory; others are pickled as usual."""
    dense = x.device.type == "cpu" and x.layout == torch.strided and x.is_contiguous()
    return dense and x.numel() > 0 and not x.requires_grad and not x.is_complex()


def _tensor(buffer: Any, dtype: torch.dtype, shape: tuple[int, ...]) -> Tensor:
    """A tensor in the memory of a buffer."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The given buffer is not writable")  # jobs do not change what they share
        return torch.frombuffer(buffer, dtype=dtype).view(shape)
