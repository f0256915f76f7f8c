from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import attar
from attar.core import budget
from attar.core.errors import AttarError
from attar.core.files import read_bytes, read_json, read_tensors, read_toml, write_tensors


@pytest.mark.parametrize(
    ("text", "size"),
    [("1", 1), ("500MB", 500_000_000), ("1.5K", 1500), (7, 7), ("3TB", 3 * 10**12)],
)
def test_sizes_are_numbers_with_a_unit(text: str | int, size: int) -> None:
    assert budget.in_bytes(text, "x") == size


@pytest.mark.parametrize("text", ["", "0", "-1", "much", "1e9", "2 PB", "nan"])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(AttarError, match="x is a number of bytes such as 500MB or 2GB"):
        budget.in_bytes(text, "x")


@given(st.lists(st.integers(0, 50), max_size=20), st.integers(1, 500))
def test_claims_add_up_and_never_exceed_the_account(sizes: list[int], most: int) -> None:
    taken = 0
    with budget.within(most):
        for size in sizes:
            if taken + size > most:
                with pytest.raises(AttarError, match=r"needs .* of memory where files may take"):
                    budget.claim(size, "x")
            else:
                budget.claim(size, "x")
                taken += size
            assert budget.left() == most - taken


def test_what_is_needed_for_a_moment_counts_and_is_given_back() -> None:
    with budget.within(100):
        for _ in range(3):
            budget.claim(10, "x", passing=60)
        with pytest.raises(AttarError, match="x needs 101 bytes"):
            budget.claim(10, "x", passing=61)


def test_the_environment_sets_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATTAR_MAX_BYTES", "3KB")
    assert budget.limit() == 3000
    monkeypatch.setenv("ATTAR_MAX_BYTES", "lots")
    with pytest.raises(AttarError, match="ATTAR_MAX_BYTES is a number of bytes"):
        attar.load("digits")


def test_load_takes_a_limit_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    np.savez(path, x=np.zeros((100, 10), np.float32), y=np.arange(100) % 2)
    assert len(attar.load(path, max_bytes="10KB").train) == 72
    with pytest.raises(AttarError, match=r"needs .* where files may take 5,000 bytes.*--max-bytes"):
        attar.load(path, max_bytes=5000)


def test_parts_of_a_mapping_share_one_account(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    np.savez(path, x=np.zeros((100, 10), np.float32), y=np.arange(100) % 2)
    with pytest.raises(AttarError, match="needs"):
        attar.load({"train": path, "test": path}, max_bytes="15KB")


@pytest.mark.parametrize("read", [read_json, read_toml])
@pytest.mark.parametrize("depth", [200, 100_000])
def test_deep_nesting_is_refused(read: object, depth: int, tmp_path: Path) -> None:
    path = tmp_path / "deep"
    path.write_text(("" if read is read_json else "a = ") + "[" * depth + "]" * depth)
    with pytest.raises(AttarError, match=r"is not (JSON|TOML)"):
        read(path)  # type: ignore[operator]


def test_dotted_keys_are_nesting_too(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(".".join("a" * 500) + " = 1")
    with pytest.raises(AttarError, match="nested more than 100 times"):
        read_toml(tmp_path / "a.toml")


def test_long_files_are_refused_before_they_are_read(tmp_path: Path) -> None:
    path = tmp_path / "sparse"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    for read in (read_json, read_toml, read_bytes):
        with pytest.raises(AttarError, match=r"sparse needs .* TB of memory"):
            read(path)


@pytest.mark.parametrize("place", ["/dev/zero", "/dev"])
def test_devices_and_folders_are_not_read(place: str) -> None:
    with pytest.raises(AttarError, match="/dev"):
        read_bytes(place)


def test_tensors_of_many_dimensions_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    write_tensors(path, {"x": torch.zeros([1] * 9)}, {})
    with pytest.raises(AttarError, match="holds 'x' of too many dimensions"):
        read_tensors(path)
