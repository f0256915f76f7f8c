"""A push writes a data set that others can load, and a dry run writes nothing: on a stub of the hub's API."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import attar
from attar.core.errors import AttarError
from attar.coreset import Coreset, Recipe
from attar.data import Data, Spec
from attar.data.split import Origin
from tests.export.hub_stub import TOKEN, Hub, running

pytest.importorskip("datasets", reason="needs the extra hf")

PRIVATE = Origin("/secret/place/farm.csv", target="label")


def coreset(*shape: int) -> Coreset:
    gen = torch.Generator().manual_seed(0)
    x = torch.randint(256, (6, *shape), generator=gen) / 255
    y = torch.arange(6) % 3
    weights = torch.arange(1.0, 7)
    recipe = Recipe("herding", 2, 0, "farm", "0f", "mlp", "0.1.0", origin=PRIVATE)
    return Coreset(Data(x, y, weights, Spec.of(shape, ("ant", "bee", "cow"), name="farm")), recipe, torch.arange(6))


@pytest.fixture
def hub() -> Iterator[Hub]:
    with running() as server:
        yield server


def test_a_dry_run_asks_the_hub_and_writes_nothing(hub: Hub) -> None:
    would = attar.push_to_hub(coreset(7), "me/farm", dry_run=True, token=TOKEN, endpoint=hub.address)
    assert hub.writes == []
    assert hub.repos == {}
    assert not would.exists
    assert would.url == f"{hub.address}/datasets/me/farm"
    assert {
        "README.md",
        "coreset.safetensors",
        "examples.csv",
        "data/train-00000-of-00001.parquet",
    } <= would.files.keys()
    assert 'load_dataset("me/farm"' in would.card


@pytest.mark.parametrize("shape", [(7,), (1, 6, 5)], ids=["features", "images"])
def test_what_is_pushed_is_what_others_load(hub: Hub, shape: tuple[int, ...], tmp_path: Path) -> None:
    import datasets

    few = coreset(*shape)
    pushed = attar.push_to_hub(few, "me/farm", token=TOKEN, endpoint=hub.address)
    files = hub.repos["me/farm"]
    assert hub.private["me/farm"]
    assert {name: len(data) for name, data in files.items()} == pushed.files
    for name, data in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(data)
    table = datasets.load_dataset(
        str(tmp_path), cache_dir=str(tmp_path / "cache"), split="train"
    )  # by the card's metadata
    assert table["label"][:] == few.data.y.tolist()
    assert table.features["label"].names == ["ant", "bee", "cow"]
    back = Coreset.load(tmp_path / "coreset.safetensors")
    assert torch.equal(back.data.x, few.data.x)
    assert back.data.weights is not None
    again = attar.push_to_hub(few, "me/farm", dry_run=True, token=TOKEN, endpoint=hub.address)
    assert again.exists


def test_no_file_names_a_place_on_this_machine(hub: Hub) -> None:
    attar.push_to_hub(coreset(7), "me/farm", token=TOKEN, endpoint=hub.address)
    assert [name for name, data in hub.repos["me/farm"].items() if b"secret" in data] == []


def test_a_known_name_stays_in_the_recipe(hub: Hub) -> None:
    few = coreset(7)
    known = replace(few, recipe=replace(few.recipe, origin=Origin("digits")))
    would = attar.push_to_hub(known, "me/farm", dry_run=True, token=TOKEN, endpoint=hub.address)
    assert '"source": "digits"' in would.card


def test_a_refusal_is_one_sentence_with_a_remedy(hub: Hub) -> None:
    with pytest.raises(AttarError, match=r"me/farm .*check the name, the token"):
        attar.push_to_hub(coreset(7), "me/farm", token="hf_" + "b" * 34, endpoint=hub.address)
    assert hub.writes == []


def test_a_hub_that_is_not_there_is_one_sentence() -> None:
    with pytest.raises(AttarError, match="check the name, the token's rights and the network"):
        attar.push_to_hub(coreset(7), "me/farm", token=TOKEN, endpoint="http://127.0.0.1:9")


@pytest.mark.parametrize("name", ["farm", "a/b/c", "me/fa rm", ""])
def test_a_name_without_an_owner_is_refused(name: str) -> None:
    with pytest.raises(AttarError, match="give owner/name"):
        attar.push_to_hub(coreset(7), name, token=TOKEN)
