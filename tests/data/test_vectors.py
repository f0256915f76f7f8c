"""Word vectors from files in the format of GloVe."""

import tracemalloc
from pathlib import Path

import pytest
import torch
from torch import Tensor

import attar
from attar.core.errors import AttarError
from attar.data import Split, Tokens, load
from attar.data.again import load_again
from attar.data.text import PADDING, UNKNOWN, hashed
from attar.data.vectors import read_vectors

WORDS = (PADDING, UNKNOWN, "good", "bad", "film", "zyzzy")
COUNTS = torch.tensor([9, 0, 5, 4, 10, 1])
GOOD = "the 1 0 0\ngood 0 2 0\n. . . 1 1 1\nbad 0 -2 0\nfilm 0.6 0 0.8\ngood 9 9 9\n"


def glove(folder: Path, content: str | bytes = GOOD) -> Path:
    path = folder / "glove.txt"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def table(path: Path) -> Tensor:
    with pytest.warns(UserWarning, match="no vector"):
        return read_vectors(path, WORDS, COUNTS).table


def test_words_get_the_first_vector_of_the_file_and_padding_is_zero(tmp_path: Path) -> None:
    found = table(glove(tmp_path))
    assert found.shape == (6, 3)
    assert found[2].tolist() == [0, 2, 0]
    assert found[3].tolist() == [0, -2, 0]
    assert torch.allclose(found[4], torch.tensor([0.6, 0, 0.8]))
    assert not found[0].any()


def test_a_word_without_a_vector_is_counted_and_gets_a_hashed_one_of_the_usual_length(tmp_path: Path) -> None:
    words = r"1 of the 4 words in the vocabulary \(5\.0 % of the running words\) have no vector in glove\.txt"
    with pytest.warns(UserWarning, match=words):
        found = read_vectors(glove(tmp_path), WORDS, COUNTS).table
    assert torch.allclose(found[[1, 5]], 2 * hashed(WORDS, 3).table[[1, 5]])  # the median length is 2


def test_nothing_is_said_where_every_word_has_a_vector(tmp_path: Path) -> None:
    assert read_vectors(glove(tmp_path), WORDS[:5], COUNTS[:5]).table.shape == (5, 3)


def test_the_first_line_of_word2vec_is_skipped(tmp_path: Path) -> None:
    assert torch.equal(table(glove(tmp_path, "6 3\n" + GOOD)), table(glove(tmp_path)))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("good 1 2 3\nbad 1 2\n", "Line 2 of .* has 2 numbers where the first has 3: give a text file"),
        ("good 1 2 3\nbad 1 2 3 4\n", "Line 2 of .* has 4 numbers where the first has 3"),
        ("good\nbad\n", "Line 1 of .* has 0 numbers where the first has none"),
        ("good 1 2 3\nbad 1 x 3\n", "Line 2 of .* not a finite number: repair"),
        ("good 1 2 nan\n", "Line 1 of .* not a finite number: repair"),
        ("gut 1 2 3\nschlecht 1 2 3\n", "has a vector for none of the 4 words"),
        ("", "has a vector for none of the 4 words"),
        (b"good 1 2 3\nb\xe4d 1 2 3\n", "Line 2 of .* is not text in UTF-8: save the vectors in UTF-8"),
        (b"\x1f\x8b\x08\x00 1 2\n", "Line 1 of .* is not text in UTF-8"),
    ],
)
def test_a_bad_file_is_refused_in_one_sentence(content: str | bytes, words: str, tmp_path: Path) -> None:
    with pytest.raises(AttarError, match=words):
        read_vectors(glove(tmp_path, content), WORDS, COUNTS)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(AttarError, match=r"none\.txt cannot be read \(No such file or directory\): check the path"):
        read_vectors(tmp_path / "none.txt", WORDS, COUNTS)


def test_the_file_is_not_held_in_memory(tmp_path: Path) -> None:
    path = glove(tmp_path, "".join(f"word{k} {'0.125 ' * 49}0.5\n" for k in range(30_000)) + "good" + " 1" * 50 + "\n")
    tracemalloc.start()
    try:
        read_vectors(path, WORDS[:3], COUNTS[:3])
        assert tracemalloc.get_traced_memory()[1] < path.stat().st_size / 10
    finally:
        tracemalloc.stop()


# in load

TEXTS = ([f"{word} film" for _ in range(20) for word in ("good", "bad")], ["yes", "no"] * 20)


def split(path: Path) -> Split:
    return load(TEXTS, vectors=path, length=3)


def test_vectors_and_length_are_options_of_load(tmp_path: Path) -> None:
    loaded = split(glove(tmp_path))
    assert isinstance(loaded.spec.element, Tokens)
    assert loaded.spec.element.length == 3
    good = loaded.spec.element.vocabulary.index("good")
    assert loaded.spec.transform.apply(torch.tensor([good]))[0].tolist() == [0, 2, 0]
    assert load(TEXTS, length=3).train.fingerprint != loaded.train.fingerprint  # networks see something else


@pytest.mark.parametrize("option", [{"vectors": "glove.txt"}, {"length": 3}])
def test_vectors_and_length_are_refused_for_numbers(option: dict[str, object]) -> None:
    with pytest.raises(AttarError, match=r"holds no texts, so .* is not used: leave"):
        load("digits", **option)  # type: ignore[arg-type]


def test_a_length_below_one_is_refused() -> None:
    with pytest.raises(AttarError, match="at least one word, got 0"):
        load(TEXTS, length=0)


def test_the_origin_remembers_vectors_and_length(tmp_path: Path) -> None:
    source = tmp_path / "films.tsv"
    source.write_text("".join(f"{label}\t{text}\n" for text, label in zip(*TEXTS, strict=True)))
    loaded = load(source, vectors=glove(tmp_path), length=3)
    assert loaded.origin is not None
    assert (loaded.origin.vectors, loaded.origin.length) == (str(tmp_path / "glove.txt"), 3)
    again = load_again(loaded.spec, loaded.origin, source)
    assert again.test.fingerprint == loaded.test.fingerprint


def test_other_texts_are_read_by_the_vocabulary_and_vectors_of_a_coreset(tmp_path: Path) -> None:
    loaded = split(glove(tmp_path))
    coreset = attar.reduce(loaded, "uniform", per_class=2)
    (tmp_path / "glove.txt").unlink()  # it is not needed again
    other = (["a good film", "the bad film"] * 20, ["yes", "no"] * 20)
    again = load_again(coreset.data.spec, None, other)
    assert again.spec.element == loaded.spec.element
    element = again.spec.element
    assert isinstance(element, Tokens)
    assert element.text(again.test.x[0].tolist()) == "<unknown> good film"
    assert 0 <= attar.evaluate(attar.infer(coreset, draws=1), again.test).accuracy <= 1
