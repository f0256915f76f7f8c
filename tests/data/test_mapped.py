"""Data sets that stay in their files."""

from pathlib import Path

import numpy as np
import pytest
import torch

from attar.core.errors import AttarError
from attar.data import Data, Mapped
from attar.data.transform import Standard
from tests.data.samples import labels, pixels


def saved(folder: Path, n: int = 50) -> tuple[Path, Path]:
    np.save(folder / "x.npy", pixels(n, 4, 4).reshape(n, 1, 4, 4))
    np.save(folder / "y.npy", labels(n))
    return folder / "x.npy", folder / "y.npy"


def test_it_gives_what_the_arrays_hold_in_chunks_or_by_place(tmp_path: Path) -> None:
    x, y = saved(tmp_path)
    data = Mapped(x, y, ["a", "b", "c"])
    stored = torch.from_numpy(np.load(x)).float() / 255
    assert len(data) == 50
    assert torch.equal(torch.cat([part.x for part in data.chunks(7)]), stored)
    taken = data.take(torch.tensor([40, 3]))
    assert torch.equal(taken.x, stored[[40, 3]])
    assert taken.names == [40, 3]
    assert taken.y.tolist() == np.load(y)[[40, 3]].tolist()
    assert data.spec.target.names == ("a", "b", "c")


def test_its_transform_is_applied_to_what_is_read(tmp_path: Path) -> None:
    x, y = saved(tmp_path)
    scaling = Standard.fit(torch.from_numpy(np.load(x)).float() / 255)
    whole = next(Mapped(x, y, transform=scaling).chunks(50))
    assert float(whole.x.mean()) == pytest.approx(0, abs=1e-5)


def test_the_fingerprint_is_of_all_examples_and_labels(tmp_path: Path) -> None:
    x, y = saved(tmp_path)
    first = Mapped(x, y).fingerprint
    assert Mapped(x, y).fingerprint == first
    changed = np.load(x)
    changed[49, 0, 3, 3] ^= 1
    np.save(x, changed)
    assert Mapped(x, y).fingerprint != first


def test_bad_files_are_refused(tmp_path: Path) -> None:
    x, y = saved(tmp_path)
    with pytest.raises(AttarError, match="There is no file"):
        Mapped(tmp_path / "none.npy", y)
    with pytest.raises(AttarError, match="give one label per example, a whole number from 0"):
        Mapped(x, np.zeros(49, dtype=np.int64))
    with pytest.raises(AttarError, match="name every class"):
        Mapped(x, y, ["a", "b"])
    (tmp_path / "cut.npy").write_bytes(x.read_bytes()[:200])
    with pytest.raises(AttarError, match=r"is not a complete \.npy file"):
        Mapped(tmp_path / "cut.npy", y)
    assert isinstance(Mapped(x, y).take(torch.tensor([0])), Data)
