"""The spec is the same from TOML, from a mapping and from Python, and refuses what cannot be run."""

from pathlib import Path

import pytest

import attar
from attar.continual import ContinualSpec
from attar.core.errors import AttarError


def test_a_recipe_and_a_mapping_make_the_same_spec(tmp_path: Path) -> None:
    path = tmp_path / "r.toml"
    path.write_text('data = "digits"\nstages = 2\nmethods = ["dm"]\ntraining = { steps = 7 }\n')
    values = {"data": "digits", "stages": 2, "methods": ["dm"], "training": {"steps": 7}}
    assert ContinualSpec.of(path) == ContinualSpec.of(values)
    assert attar.ContinualSpec.of(path).plain()["training"]["steps"] == 7


def test_wrong_names_and_numbers_are_refused() -> None:
    with pytest.raises(AttarError, match="did you mean 'herding'"):
        ContinualSpec.of({"methods": ["herdin"]})
    with pytest.raises(AttarError, match="did you mean 'stages'"):
        ContinualSpec.of({"stage": 2})
    with pytest.raises(AttarError, match="2 data sets have one stage each, but stages is 3"):
        ContinualSpec.of({"data": ["digits", "mnist"], "stages": 3})
    with pytest.raises(AttarError, match="There is no data"):
        ContinualSpec().load_data()
    with pytest.raises(AttarError, match="belongs to one data set"):
        ContinualSpec(test_data="digits").load_data(["digits", "digits"])
