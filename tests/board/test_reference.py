from dataclasses import replace
from pathlib import Path

import pytest
import torch

from attar.board.reference import TENSORS, read_reference, refer, tensors_of
from attar.core.errors import AttarError
from attar.core.files import write_tensors
from tests.board.boards import problem
from tests.known import digits


def test_the_reference_keeps_its_predictions_on_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATTAR_REFERENCES", str(tmp_path / "networks"))
    made = problem(tmp_path)
    path = refer(made, tmp_path, split=digits(), epochs=1)
    found, tensors = read_reference(path), tensors_of(tmp_path, made)
    assert tensors is not None
    said = tensors["predictive"]
    right = float((said.argmax(1) == digits().test.y).double().mean())
    assert found.scores["accuracy"] == pytest.approx(right)
    assert found.epochs == 1
    assert len(found.rungs) >= 2
    assert tensors_of(tmp_path, replace(made, name="digits-b", reference="digits")) is not None
    with pytest.raises(AttarError, match="is of another version of the problem digits"):
        tensors_of(tmp_path, replace(made, draws=2))


def test_a_problem_without_a_reference_has_none_and_foreign_files_are_refused(tmp_path: Path) -> None:
    made = problem(tmp_path)
    assert tensors_of(tmp_path, made) is None
    place = tmp_path / "references" / "digits.safetensors"
    write_tensors(place, {"predictive": torch.ones(3, 10) / 10}, {"format": TENSORS, "problem": made.checksum})
    with pytest.raises(AttarError, match="predicts other test examples"):
        tensors_of(tmp_path, made)
    write_tensors(place, {"other": torch.ones(3)}, {"format": "x"})
    with pytest.raises(AttarError, match="is no reference of this version"):
        tensors_of(tmp_path, made)
