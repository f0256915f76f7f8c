"""The grid of networks, and what is refused before anything runs."""

from pathlib import Path

import pytest

from attar.core.errors import AttarError
from attar.nas import NasSpec
from attar.nets.names import parse


def test_the_default_grid_has_at_least_36_networks_of_width_32_at_most() -> None:
    networks = NasSpec().networks
    assert len(set(networks)) == len(networks) >= 36
    assert max(int(parse(name)[1]["width"]) for name in networks) <= 32


def test_every_axis_varies_what_it_says() -> None:
    spec = NasSpec(depths=(1, 2), widths=4, norms=("none", "group"), activations="sigmoid", pools=("none", "max"))
    found = [parse(name)[1] for name in spec.networks]
    assert [tuple(o[key] for key in ("depth", "norm", "pool")) for o in found] == [
        (depth, norm, pool) for depth in (1, 2) for norm in ("none", "group") for pool in ("none", "max")
    ]
    assert {(o["width"], o["activation"]) for o in found} == {(4, "sigmoid")}


def test_rows_are_the_methods_early_stopping_and_the_full_data() -> None:
    assert NasSpec(methods=("dm",)).rows == ["uniform", "herding", "dm", "early-stopping", "full"]
    assert NasSpec(methods=("dm",), baselines=False).rows == ["dm", "full"]
    assert NasSpec(methods=("dm", "early-stopping"), baselines=False).rows == ["dm", "early-stopping", "full"]


def test_a_recipe_and_a_mapping_make_the_same_spec(tmp_path: Path) -> None:
    path = tmp_path / "r.toml"
    path.write_text('data = "digits"\nmethods = ["dm"]\nwidths = [4]\ntraining = { steps = 7 }\n')
    assert NasSpec.of(path) == NasSpec.of({"data": "digits", "methods": ["dm"], "widths": 4, "training": {"steps": 7}})


def test_wrong_names_and_numbers_are_refused() -> None:
    for values, sentence in (
        ({"norms": ["instanc"]}, "did you mean 'instance'"),
        ({"pools": ["mean"]}, "Unknown pooling 'mean'"),
        ({"activations": ["relux"]}, "did you mean 'relu'"),
        ({"full_steps": 300}, "Training on the full data has 300 steps and on proxy sets 300: give more full steps"),
        ({"depths": 1, "widths": 8, "norms": "none", "pools": "max"}, "at least 2 networks"),
    ):
        with pytest.raises(AttarError, match=sentence):
            NasSpec.of(values)
