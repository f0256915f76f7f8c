"""Settings of every test run: one thread, as results are compared to the bit, and memory that is kept."""

import os
import signal
from collections.abc import Iterator
from multiprocessing import get_context

import pytest
import torch
from hypothesis import HealthCheck, settings

from attar.engine import processes, share
from attar.engine.memory import keep_freed_memory
from tests.apart import LATER

torch.set_num_threads(1)
keep_freed_memory()

# A run in the background (nohup, `&`) starts with these ignored, and so would every process that it starts.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

# The same few examples in every run, however slow the machine is.
settings.register_profile(
    "attar",
    derandomize=True,
    max_examples=25,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("attar")


@pytest.fixture
def device() -> str:
    """Where tests from data to scores compute: ``ATTAR_TEST_DEVICE``, such as cuda; see benchmarks/gpu.md."""
    return os.environ.get("ATTAR_TEST_DEVICE", "cpu")


@pytest.fixture(scope="session", autouse=True)
def references(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Networks that studies keep for others are written to a folder of this run."""
    os.environ["ATTAR_REFERENCES"] = str(tmp_path_factory.mktemp("references"))


@pytest.fixture(scope="session", autouse=True)
def quick_workers() -> Iterator[None]:
    """Workers of engines are forks of a process that has imported the library; those of `known.python` are not."""
    context = get_context("forkserver")
    context.set_forkserver_preload(["attar._public", *LATER])
    with pytest.MonkeyPatch.context() as patch:
        for module in (processes, share):
            patch.setattr(module, "get_context", lambda method: context)
        yield
