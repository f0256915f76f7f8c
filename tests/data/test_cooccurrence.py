"""Word vectors learnt from the training texts."""

import math
from pathlib import Path

import pytest
import torch
from torch import Tensor

import attar
from attar.core.errors import AttarError
from attar.coreset import Coreset
from attar.data import Split, Tokens, cooccurrence, load
from attar.data.again import load_again
from attar.data.cooccurrence import SPREAD, learn_vectors
from attar.data.text import Tokeniser, hashed

ALIKE = ["the cat sleeps", "the dog sleeps", "a cat eats", "a dog eats", "the sun shines"]


def learnt(texts: list[str]) -> dict[str, Tensor]:
    coder = Tokeniser.fit(texts)
    counts = coder(texts).flatten().bincount(minlength=len(coder.element.vocabulary))
    table = learn_vectors(texts, coder.element.vocabulary, counts).table
    return dict(zip(coder.element.vocabulary, table, strict=True))


def test_two_words_worked_by_hand() -> None:
    # Every pair is (x, y) once: each word has half of all pairs, so M = [[0, log 2], [log 2, 0]].
    found = learnt(["x y"] * 3)
    x, y = found["x"].double(), found["y"].double()
    assert len(x) == 2  # no more dimensions than words
    assert float(x @ y) == pytest.approx(0, abs=1e-6)  # U S U' has no diagonal, and both singular values are log 2
    assert float(x.norm()) == pytest.approx(float(y.norm()))
    assert float(torch.stack([x, y]).square().mean().sqrt()) == pytest.approx(SPREAD)


def test_information_is_that_of_the_definition() -> None:
    texts = ["a b", "a b", "a c"]  # pairs ab 2, ac 1, in both directions: 6 in all; a is in 3, b in 2, c in 1
    matrix = cooccurrence._information(cooccurrence._pairs(texts, ["a", "b", "c"]))
    wanted = torch.zeros(3, 3, dtype=torch.float64)
    wanted[0, 1] = wanted[1, 0] = math.log(2 * 6 / (3 * 2))
    wanted[0, 2] = wanted[2, 0] = math.log(1 * 6 / (3 * 1))
    assert torch.allclose(matrix, wanted)


def test_words_are_pairs_up_to_five_words_apart_and_never_across_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["a x x x x b x c", "c a"]
    pairs = cooccurrence._pairs(texts, ["a", "b", "c"])  # x is not among them but takes its place
    assert pairs.tolist() == [[0, 1, 1], [1, 0, 1], [1, 1, 0]]
    monkeypatch.setattr(cooccurrence, "TEXTS", 1)
    assert torch.equal(cooccurrence._pairs(texts, ["a", "b", "c"]), pairs)


def test_words_with_the_same_contexts_get_the_same_vector_and_others_do_not() -> None:
    found = learnt(ALIKE)
    assert torch.allclose(found["cat"], found["dog"], atol=1e-6)
    assert not torch.allclose(found["cat"], found["sun"], atol=0.1)
    assert not found[""].any()


def test_the_largest_number_of_every_dimension_is_positive_and_a_second_run_has_the_same_bits() -> None:
    found, again = learnt(ALIKE), learnt(ALIKE)
    assert all(torch.equal(vector, again[word]) for word, vector in found.items())
    table = torch.stack([vector for word, vector in found.items() if word not in ("", "<unknown>")])
    assert bool((table.amax(0) >= -table.amin(0) - 1e-6).all())


def test_a_few_dimensions_are_those_of_the_whole_decomposition() -> None:
    gen = torch.Generator().manual_seed(0)
    basis = torch.linalg.qr(torch.randn(120, 120, generator=gen, dtype=torch.float64))[0]
    signs = torch.tensor([1.0, -1.0], dtype=torch.float64).repeat(60)
    matrix = basis * (0.8 ** torch.arange(120) * signs) @ basis.T
    values, vectors = cooccurrence._eigen(matrix, 5)
    assert torch.allclose(values, (0.8 ** torch.arange(5) * signs[:5]), atol=1e-6)
    assert torch.allclose((vectors * basis[:, :5]).sum(0).abs(), torch.ones(5, dtype=torch.float64), atol=1e-6)


def test_rare_words_get_hashed_vectors_of_the_median_length_and_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cooccurrence, "MOST", 3)
    words = (
        r"1 of the 4 words in the vocabulary \(10\.0 % of the running words\) have no vector learnt from the training"
    )
    with pytest.warns(UserWarning, match=words):
        found = learnt(["a b", "a b", "a c", "b c", "a d"])
    unit = hashed(["d"], len(found["d"])).table[0]
    length = torch.stack([found[word] for word in "abc"]).norm(dim=1).median()
    assert torch.allclose(found["d"], length * unit)


def test_texts_of_single_words_teach_nothing() -> None:
    with pytest.raises(AttarError, match=r"no words occur together .*: leave vectors out, or give a file"):
        learnt(["a", "b", "a"])


# in load

WORDS = (("good", "yes"), ("bad", "no"))


def source(folder: Path, name: str, rows: int = 20, more: str = "") -> Path:
    path = folder / name
    path.write_text("".join(f"{label}\ta {word} film{more} number {k}\n" for k in range(rows) for word, label in WORDS))
    return path


def vectors(split: Split) -> Tensor:
    return split.spec.transform.tensors()["table"]


def test_only_training_texts_count(tmp_path: Path) -> None:
    train, short, other = (
        source(tmp_path, name, rows, more)
        for name, rows, more in (("train.tsv", 20, ""), ("test.tsv", 4, ""), ("other.tsv", 9, " of a good bad book"))
    )
    found = [load({"train": train, "val": train, "test": held}, vectors="learnt") for held in (short, other)]
    found.append(load({"train": train, "val": other, "test": short}, vectors="learnt"))
    assert all(torch.equal(vectors(split), vectors(found[0])) for split in found)
    fewer = load({"train": source(tmp_path, "few.tsv", 8), "val": train, "test": short}, vectors="learnt")
    assert vectors(fewer).shape != vectors(found[0]).shape


def test_learnt_vectors_survive_in_a_coreset_file(tmp_path: Path) -> None:
    path = source(tmp_path, "films.tsv")
    split = load(path, vectors="learnt")
    assert split.origin is not None
    assert split.origin.vectors == "learnt"
    assert split.train.fingerprint != load(path).train.fingerprint
    attar.reduce(split, "uniform", per_class=2).save(tmp_path / "c.safetensors")
    coreset = Coreset.load(tmp_path / "c.safetensors")
    again = load_again(coreset.data.spec, coreset.recipe.origin, path)
    assert isinstance(again.spec.element, Tokens)
    assert torch.equal(vectors(again), vectors(split))
    assert again.test.fingerprint == split.test.fingerprint
    assert coreset.texts() is not None


def test_it_is_refused_for_numbers() -> None:
    with pytest.raises(AttarError, match="holds no texts, so vectors=learnt is not used: leave vectors out"):
        load("digits", vectors="learnt")
