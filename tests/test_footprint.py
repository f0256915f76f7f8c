"""The core stays small: what it needs beside torch fits in 150 MB."""

from importlib.metadata import requires

from packaging.requirements import Requirement

from benchmarks.footprint import beside_torch, sizes


def core() -> set[str]:
    needed = [Requirement(line) for line in requires("attar") or []]
    return {requirement.name for requirement in needed if requirement.marker is None}


def test_the_core_needs_less_than_150_megabytes_beside_torch() -> None:
    assert sum(beside_torch().values()) < 150e6


def test_every_core_dependency_is_counted_and_none_of_torch_s() -> None:
    counted = beside_torch()
    assert all(size > 0 for size in counted.values())
    assert not counted.keys() & sizes("torch").keys()
    assert core() <= counted.keys() | sizes("torch").keys()
    assert {"numpy", "pydantic", "typer"} <= counted.keys()  # pydantic-core and the like come by way of these
    assert "pydantic-core" in counted


def test_no_extra_slips_into_the_core() -> None:
    assert not beside_torch().keys() & {"scikit-learn", "scipy", "matplotlib", "pyarrow", "datasets", "kornia", "ray"}
