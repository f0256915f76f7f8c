"""`attar import`: a set that was made elsewhere, as a coreset."""

from pathlib import Path

import numpy as np
import pytest
import torch

from attar import Coreset
from tests.cli.conftest import Attar
from tests.known import digits

STATED = ("--data", "digits", "--scaling", "standard", "--train-steps", "5")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    few = digits().train.sample_per_class(2, torch.Generator().manual_seed(0))
    path = tmp_path / "set.npz"
    np.savez(path, images=few.x.numpy(), labels=few.y.numpy(), rows=np.eye(10)[few.y.numpy()] - 0.1, w=np.arange(20.0))
    np.save(tmp_path / "x.npy", few.x.numpy())
    np.save(tmp_path / "y.npy", few.y.numpy())
    return path


def test_a_set_of_images_becomes_a_coreset_that_can_be_trained_on(attar: Attar, file: Path, tmp_path: Path) -> None:
    path = tmp_path / "c.safetensors"
    done = attar("import", file, *STATED, "--weights", "w", "--method", "theirs", "--source", "a paper", "-o", path)
    assert done.code == 0, done.err
    made = Coreset.load(path)
    assert (made.recipe.method, made.recipe.per_class, made.recipe.source) == ("theirs", 2, "a paper")
    assert made.recipe.fingerprint == digits().train.fingerprint
    assert made.recipe.training.steps == 5
    assert made.data.weights is not None
    assert attar("infer", path, "--draws", "1", "-o", tmp_path / "p.safetensors").code == 0


def test_regression_targets_are_made_for_regression(attar: Attar, file: Path, tmp_path: Path) -> None:
    path = tmp_path / "c.safetensors"
    rows = "--labels", "rows", "--convention", "centred"
    done = attar("import", file, *STATED, *rows, "-o", path)
    assert (done.code, path.exists()) == (2, False)
    assert "are not for the loss cross-entropy: state squared" in done.err
    done = attar(
        "import", file, *STATED, *rows, "--train-loss", "squared", "-s", "last-layer-vi", "--scale", "5", "-o", path
    )
    assert done.code == 0, done.err
    assert Coreset.load(path).recipe.sampler_options == {"scale": 5.0}


def test_two_files_of_arrays_are_one_set(attar: Attar, file: Path, tmp_path: Path) -> None:
    path = tmp_path / "c.safetensors"
    done = attar("import", tmp_path / "x.npy", "--labels", tmp_path / "y.npy", *STATED, "-o", path)
    assert done.code == 0, done.err
    assert len(Coreset.load(path)) == 20


def test_what_must_be_stated_is_asked_for_in_one_sentence(attar: Attar, file: Path) -> None:
    done = attar("import", file)
    assert done.code == 2
    for word in ("data, such as cifar10", "scaling: standard, zca, none", "training, such as"):
        assert word in done.err
    done = attar("import", file, *STATED, "--labels", "rows")
    assert done.code == 2
    assert "convention: probabilities for" in done.err


def test_bad_input_is_one_sentence(attar: Attar, file: Path) -> None:
    assert "has no array 'imges'" in attar("import", file, *STATED, "--images", "imges").err
    assert "Unknown sampler" in attar("import", file, *STATED, "-s", "sghmcc").err
