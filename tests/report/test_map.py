from __future__ import annotations

import base64
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from attar.coreset import Coreset
from attar.data import Data, Split
from attar.data.spec import Spec
from attar.report import render
from attar.report.gallery import galleries
from attar.report.map import POINTS, Map, map_of
from attar.report.rows import rows, the_best
from attar.study.results import Study
from tests.known import generator
from tests.report.reading import EVIL, section, text
from tests.report.studies import CLASSES, coreset, study


def split(data: Data) -> Split:
    return Split(replace(data, rows=torch.arange(len(data)) * 10), data, data)


def pictures(n: int = 60, side: int = 6) -> Data:
    return Data(
        torch.rand(n, 1, side, side, generator=generator()),
        torch.arange(n) % 3,
        spec=Spec.of((1, side, side), CLASSES, name="Toy set"),
    )


def drawn(made: Study, folder: Path, at: Split) -> Map:
    table = rows(made)
    found = map_of(at, galleries(table, folder), the_best(table))
    assert found is not None
    return found


def numbers(packed: str) -> list[int]:
    found: list[int] = np.frombuffer(base64.b64decode(packed), "<u2").tolist()
    return found


def test_picked_examples_lie_where_the_training_examples_lie(tmp_path: Path) -> None:
    found = drawn(study(tmp_path), tmp_path, split(pictures())).drawn
    places = np.array(numbers(found["points"]["at"])).reshape(-1, 2)
    for each in found["sets"]:
        for x, y in np.array(numbers(each["at"])).reshape(-1, 2):
            assert np.abs(places - [x, y]).max(1).min() <= 3  # their scalings round differently
    assert {each["name"] for each in found["sets"]} == {"uniform (random)", "herding", "dm"}
    assert {each["name"] for each in found["sets"] if each["on"]} >= {"uniform (random)"}


def test_the_nearest_real_neighbour_of_a_picked_example_is_itself(tmp_path: Path) -> None:
    found = drawn(study(tmp_path), tmp_path, split(pictures())).drawn
    points = found["points"]
    places = np.array(numbers(points["at"])).reshape(-1, 2)
    for each in found["sets"]:
        first = numbers(each["near"])[:: each["each"]]
        assert np.abs(places[first] - np.array(numbers(each["at"])).reshape(-1, 2)).max() <= 3
        labels = numbers(points["labels"])
        assert [labels[i] for i in first] == numbers(each["labels"])


def test_rows_are_those_of_the_user(tmp_path: Path) -> None:
    assert drawn(study(tmp_path), tmp_path, split(pictures())).drawn["points"]["rows"] == list(range(0, 600, 10))
    bare = Split(pictures(), pictures(), pictures())
    assert drawn(study(tmp_path), tmp_path, bare).drawn["points"]["rows"] == list(range(60))


def test_large_data_is_sampled_and_the_page_stays_small(tmp_path: Path) -> None:
    coarse = torch.rand(POINTS + 500, 3, 8, 8, generator=generator())
    x = torch.nn.functional.interpolate(coarse, scale_factor=4)
    labels = torch.arange(len(x)) % 3
    made = study(tmp_path, seeds=1, pool=x[:60], labels=labels[:60])
    page = render(made, tmp_path, split=split(Data(x, labels, spec=Spec.of(x.shape[1:], CLASSES))))
    assert len(page) < 2_000_000
    assert "5,000 of the 5,500 training examples, drawn at random" in text(section(page, "map"))


@pytest.mark.parametrize("known", [True, False])
def test_vectors_tell_their_columns_and_coresets_without_files_are_named(tmp_path: Path, known: bool) -> None:
    x, labels = torch.randn(60, 12, generator=generator()), torch.arange(60) % 3
    made = study(tmp_path, seeds=1, pool=x, labels=labels)
    if not known:
        (tmp_path / "dm-2-0.safetensors").unlink()
    found = drawn(made, tmp_path, split(Data(x, labels, spec=Spec.of((12,), CLASSES))))
    assert found.drawn["points"]["sheet"] is None
    assert found.drawn["points"]["words"][0].startswith(f"x0 {x[0, 0]:.4g}, x1 ")
    assert found.notes == ([] if known else ["dm (2 per class, 6 examples in all) is not on the map."])


def test_a_learnt_example_far_outside_does_not_shrink_the_map(tmp_path: Path) -> None:
    made = study(tmp_path)
    before = drawn(made, tmp_path, split(pictures())).drawn["points"]["at"]
    name = next(run.coreset for run in made.runs if run.method == "dm" and run.seed == 0)
    assert name is not None
    learnt = Coreset.load(tmp_path / name)
    replace(learnt, data=replace(learnt.data, x=1e6 * learnt.data.x)).save(tmp_path / name)
    after = drawn(made, tmp_path, split(pictures())).drawn
    assert after["points"]["at"] == before
    marks = next(numbers(each["at"]) for each in after["sets"] if each["name"] == "dm")
    assert all(place in (0, 65535) for place in marks)


def test_fewer_large_examples_are_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[map_of.__module__], "NUMBERS", 36 * 250)
    found = drawn(study(tmp_path), tmp_path, split(pictures(n=300)))
    assert (found.shown, found.of) == (250, 300)


def test_a_coreset_of_another_shape_is_not_on_the_map(tmp_path: Path) -> None:
    made = study(tmp_path)
    found = drawn(made, tmp_path, split(pictures(side=7)))
    assert found.drawn["sets"] == []
    assert len(found.notes) == 3


def test_names_from_files_cannot_leave_the_data_of_the_map(tmp_path: Path) -> None:
    evil = replace(pictures(), spec=Spec.of((1, 6, 6), (EVIL, "b", "c")))
    page = render(study(tmp_path, classes=(EVIL, "b", "c")), tmp_path, split=split(evil))
    assert EVIL not in page
    block = section(page, "map").partition('class="map-data">')[2].partition("</script>")[0]
    value: dict[str, Any] = json.loads(block)
    assert value["classes"] == [EVIL, "b", "c"]


def test_too_few_examples_have_no_map(tmp_path: Path) -> None:
    table = rows(study(tmp_path))
    two = pictures()[:2]
    assert map_of(Split(two, two, two), galleries(table, tmp_path), None) is None
    coreset("dm", 1, 0, pictures(), tmp_path, generator())
    assert 'id="map"' not in render(study(tmp_path), tmp_path)
