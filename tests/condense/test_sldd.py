import pytest
import torch

import attar
from attar.condense.sldd import SLDD
from tests.known import gaussians, generator

DATA = gaussians(16)


@pytest.mark.parametrize("start", ["one-hot", "uniform", "similarity"])
def test_labels_start_as_asked_and_are_learnt(start: str) -> None:
    method = SLDD(label_start=start, epochs=1)  # type: ignore[arg-type]
    first = method.source(DATA.sample_per_class(1, generator()), generator())()
    assert torch.allclose(first.y.sum(1), torch.ones(3))
    if start == "uniform":
        assert torch.allclose(first.y, torch.full((3, 3), 1 / 3))
    else:
        assert first.hard.tolist() == [0, 1, 2]
    options = {"label_start": start, "epochs": 1, "batch": 8, "inits": 1}
    made = attar.reduce(DATA, "sldd", per_class=1, network="linear", options=options, descent={"steps": 3})
    assert not torch.allclose(made.data.y, first.y, atol=1e-4)


def test_similar_classes_share_labels_at_the_start() -> None:
    near = gaussians(4, classes=3, size=6)
    x = near.x.clone()
    x[near.y == 1] = x[near.y == 0] + 0.1  # class 1 beside class 0, class 2 far off
    method = SLDD(label_start="similarity", epochs=1)
    labels = method.source(near.map(lambda _: x).sample_per_class(1, generator()), generator())().y
    assert float(labels[0, 1]) > 3 * float(labels[0, 2])


def test_tdd_is_sldd_on_the_embeddings_of_texts() -> None:
    texts = ["good film", "great plot", "bad film", "awful plot"] * 8
    labels = ["up", "up", "down", "down"] * 8
    split = attar.load((texts, labels))
    made = attar.reduce(split, "tdd", per_class=1, options={"epochs": 2, "batch": 8}, descent={"steps": 20})
    assert made.data.x.is_floating_point()
    assert made.data.y.shape == (2, 2)
    assert all(set(text.split()) <= set(" ".join(texts).split()) for text in made.texts())
