"""Settings of every test run: one thread, as results are compared to the bit, and memory that is kept."""

import os
import signal

import pytest
import torch
from hypothesis import HealthCheck, settings

from attar.engine.memory import keep_freed_memory

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


@pytest.fixture(scope="session", autouse=True)
def references(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Networks that studies keep for others are written to a folder of this run."""
    os.environ["ATTAR_REFERENCES"] = str(tmp_path_factory.mktemp("references"))
