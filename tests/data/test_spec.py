"""What an example and a label are: elements, classes, and what goes into a file."""

import pytest
import torch

from attar.core.errors import AttarError
from attar.data import Classes, Data, Image, Spec, Tokens, Vector
from attar.data.spec import Element, element_of
from attar.data.text import hashed
from attar.data.transform import Embedding, Standard
from tests.known import generator

WORDS = ("", "<unknown>", "good", "bad")


@pytest.mark.parametrize(
    "spec",
    [
        Spec.of((3,), "ab", Standard(torch.ones(3), torch.ones(3)), "table"),
        Spec(Vector(("age", "height")), Classes(("no", "yes")), name="people"),
        Spec.of((1, 4, 5), 3, name="pictures"),
        Spec(Tokens(3, WORDS), Classes(("no", "yes")), hashed(WORDS, 4), "films"),
    ],
    ids=lambda spec: spec.name,
)
def test_what_goes_into_a_file_comes_back(spec: Spec) -> None:
    tensors, text = spec.pack()
    again = Spec.unpack(tensors, text)
    assert (again.element, again.target, again.name) == (spec.element, spec.target, spec.name)
    x = spec.element.random(2, generator())
    assert torch.equal(again.transform.apply(x), spec.transform.apply(x))
    again.check()


@pytest.mark.parametrize("element", [Image(1, 2, 3), Vector.of(4), Tokens(3, WORDS)], ids=lambda e: type(e).__name__)
def test_random_examples_fit_and_others_do_not(element: Element) -> None:
    x = element.random(3, generator())
    assert len(x) == 3
    assert element.fits(x)
    assert not element.fits(x[:, :-1])
    assert not element.fits(x[0])


def test_learnt_embeddings_fit_where_tokens_do() -> None:
    element = Tokens(3, WORDS)
    assert element.fits(torch.zeros(2, 3, 8))
    assert not element.fits(torch.zeros(2, 3))
    assert element.text([2, 3, 0]) == "good bad"


def test_a_shape_that_is_neither_vector_nor_image_is_refused() -> None:
    with pytest.raises(AttarError, match="neither feature vectors"):
        element_of((3, 128))


def test_classes_match_by_name_or_by_number() -> None:
    named, other = Classes(("cat", "dog")), Classes(("dog", "cat"))
    assert named.matches(named)
    assert named.matches(Classes.of(2))
    assert Classes.of(2).matches(named)
    assert not named.matches(other)
    assert not named.matches(Classes.of(3))


def test_a_union_keeps_places_and_adds_what_is_new() -> None:
    both = Classes(("cat", "dog")).union(Classes(("emu", "cat")))
    assert both.names == ("cat", "dog", "emu")
    assert both.places(["emu", "cat"]).tolist() == [2, 0]


def test_data_finds_its_spec_in_the_arrays_and_follows_a_change_of_shape() -> None:
    data = Data(torch.zeros(4, 6), torch.tensor([0, 1, 2, 0]))
    assert data.spec.element == Vector.of(6)
    assert data.spec.target == Classes.of(3)
    assert data.map(lambda x: x.reshape(-1, 1, 2, 3)).spec.element == Image(1, 2, 3)
    assert Data(torch.zeros(2, 6), torch.rand(2, 5)).classes == 5
    assert Data(torch.zeros(2, 6), torch.rand(2)).classes == 0  # targets of regression


def test_rows_and_keys_follow_every_slice() -> None:
    rows = torch.tensor([5, 3, 8, 1])
    data = Data(torch.zeros(4, 2), torch.tensor([0, 1, 0, 1]), rows=rows)
    assert data[torch.tensor([2, 0])].names == [8, 5]
    assert data.of_class(1).to("cpu").names == [3, 1]
    keyed = Data(data.x, data.y, rows=rows, keys=[f"{k}.png" for k in range(9)])
    assert keyed[1:3].names == ["3.png", "8.png"]
    assert Data(data.x, data.y).names is None


@pytest.mark.parametrize("rows", [2, 4])
def test_a_table_of_embeddings_has_a_row_for_every_word(rows: int) -> None:
    words = Tokens(2, ("", "a", "b"))
    Spec(words, Classes.of(2), Embedding(torch.rand(3, 5))).check()
    with pytest.raises(ValueError, match=f"{rows} rows for 3 words"):
        Spec(words, Classes.of(2), Embedding(torch.rand(rows, 5))).check()
