"""Threads that wait for each other sleep: OpenMP is told so before torch, which brings it, is loaded."""

import os

import pytest

from tests.known import new_python

AT_IMPORT = """
import importlib, os, sys

class Watch:
    def find_spec(self, name, path=None, target=None):
        if name == "torch":
            print("torch is imported under", os.environ.get("OMP_WAIT_POLICY"))

os.environ.pop("OMP_WAIT_POLICY", None)
os.environ.update(dict(word.split("=") for word in sys.argv[2:]))
sys.meta_path.insert(0, Watch())
importlib.import_module(sys.argv[1]).load
"""
IN_WORKERS = """
import os
os.environ.pop("OMP_WAIT_POLICY", None)
import torch
from attar.engine import Engine, run_all
from tests.test_waiting import policy
if __name__ == "__main__":
    print(sorted(run_all(policy, None, [1, 2], Engine(workers=2))))
"""


def policy(shared: None, job: int) -> str | None:
    return os.environ.get("OMP_WAIT_POLICY")


@pytest.mark.parametrize(
    ("module", "given", "found"),
    [("attar", [], "passive"), ("attar.data", [], "passive"), ("attar", ["OMP_WAIT_POLICY=active"], "active")],
)
def test_torch_is_imported_after_the_policy_is_set_and_a_given_one_is_kept(
    module: str, given: list[str], found: str
) -> None:
    out, err = new_python(AT_IMPORT, module, *given).communicate(timeout=300)
    assert not err
    assert out.splitlines() == [f"torch is imported under {found}"]


def test_workers_inherit_the_policy_even_where_torch_came_first() -> None:
    out, err = new_python(IN_WORKERS).communicate(timeout=300)
    assert not err
    assert out.strip() == "[(1, 'passive'), (2, 'passive')]"
