from dataclasses import replace
from pathlib import Path

import pytest
import torch

from attar.assess.converged import converged
from attar.assess.distance import distance
from attar.assess.score import predictions
from attar.board.records import write_record
from attar.board.reference import ADAPTER, TENSORS, add_floor, normal, read_reference, refer, tensors_of
from attar.core.errors import AttarError
from attar.core.files import write_tensors
from attar.nets import network
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
    assert found.scores["worst"] <= found.scores["balanced_accuracy"]
    assert tensors_of(tmp_path, replace(made, name="digits-b", reference="digits")) is not None
    with pytest.raises(AttarError, match="is of another version of the problem digits"):
        tensors_of(tmp_path, replace(made, draws=2))


def test_the_floor_is_the_distance_to_all_data_of_another_seed_and_can_be_added_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ATTAR_REFERENCES", str(tmp_path / "networks"))
    made = problem(tmp_path)
    path = refer(made, tmp_path, split=digits(), epochs=1)
    found, before = read_reference(path), path.with_suffix(".safetensors").read_bytes()
    other = converged(digits(), network("linear", digits().spec), made.training, made.draws, seed=1, epochs=1)
    first = normal(tensors_of(tmp_path, made)["predictive"])  # type: ignore[index]
    second = predictions(other.posterior, digits().test)
    assert found.floor == pytest.approx(distance(first, second).total_variation, rel=1e-5)
    assert found.floor > 0
    write_record(path, ADAPTER, replace(found, floor=None))  # of a version from before
    assert read_reference(add_floor(made, tmp_path, split=digits())) == found
    assert path.with_suffix(".safetensors").read_bytes() == before  # scores were judged by it


def test_a_problem_without_a_reference_has_none_and_foreign_files_are_refused(tmp_path: Path) -> None:
    made = problem(tmp_path)
    assert tensors_of(tmp_path, made) is None
    with pytest.raises(AttarError, match="digits has no reference"):
        add_floor(made, tmp_path, split=digits())
    place = tmp_path / "references" / "digits.safetensors"
    write_tensors(place, {"predictive": torch.ones(3, 10) / 10}, {"format": TENSORS, "problem": made.checksum})
    with pytest.raises(AttarError, match="predicts other test examples"):
        tensors_of(tmp_path, made)
    write_tensors(place, {"other": torch.ones(3)}, {"format": "x"})
    with pytest.raises(AttarError, match="is no reference of this version"):
        tensors_of(tmp_path, made)
