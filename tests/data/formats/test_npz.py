"""Kuzushiji-49 in small files of the official layout."""

from pathlib import Path

import numpy as np
import pytest

from attar.core.errors import AttarError
from attar.data.load import load
from tests.data.samples import labels, pixels


def kuzushiji(folder: Path) -> Path:
    folder.mkdir(parents=True)
    for part, n in (("train", 147), ("test", 98)):
        np.savez_compressed(folder / f"k49-{part}-imgs.npz", pixels(n, 28, 28, seed=n))
        np.savez_compressed(folder / f"k49-{part}-labels.npz", labels(n, 49).astype(np.uint8))
    return folder


def test_kuzushiji49_is_four_arrays(tmp_path: Path) -> None:
    folder = kuzushiji(tmp_path / "kuzushiji49")
    split = load("kuzushiji49", root=tmp_path, download=False, scaling="none")
    assert split.shape == (1, 28, 28)
    assert split.classes == 49
    assert split.spec.target.names[43:] == ("wa", "wi", "we", "wo", "n", "iteration")
    assert (split.test.x[:, 0] * 255).round().byte().numpy().tolist() == pixels(98, 28, 28, seed=98).tolist()
    assert split.test.y.tolist() == labels(98, 49).tolist()
    assert load(folder, scaling="none").train.fingerprint == split.train.fingerprint


def test_kuzushiji49_with_another_array_is_refused(tmp_path: Path) -> None:
    folder = kuzushiji(tmp_path / "kuzushiji49")
    np.savez(folder / "k49-test-labels.npz", y=labels(98, 49))
    with pytest.raises(AttarError, match=r"k49-test-labels\.npz holds y, not one array arr_0: download it again"):
        load("kuzushiji49", root=tmp_path)
