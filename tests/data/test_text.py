"""Texts as tokens."""

import torch

import attar
from attar.data import Tokens
from attar.data.text import UNKNOWN, Tokeniser, hashed
from attar.data.words import words


def test_words_are_lower_case_and_punctuation_stands_alone() -> None:
    assert words("Don't panic: it's 42!") == ["don", "'", "t", "panic", ":", "it", "'", "s", "42", "!"]


def test_texts_are_padded_cut_and_unknown_words_are_known_as_such() -> None:
    coder = Tokeniser.fit(["a b", "a c", "a b c"])
    assert coder.element.vocabulary == ("", UNKNOWN, "a", "b", "c")
    assert coder.element.length == 2
    assert coder(["c", "a x b"]).tolist() == [[4, 0], [2, 1]]


def test_hashed_vectors_depend_on_the_word_alone() -> None:
    first, second = hashed(["", "cat", "dog"]), hashed(["", "dog"])
    assert torch.equal(first.table[2], second.table[1])
    assert not first.table[0].any()
    assert torch.allclose(first.table[1:].norm(dim=1), torch.ones(2))


def test_a_list_of_texts_is_loaded_as_tokens() -> None:
    texts = [f"{word} film number {k}" for k in range(20) for word in ("good", "bad")]
    split = attar.load((texts, ["yes", "no"] * 20))
    element = split.spec.element
    assert isinstance(element, Tokens)
    assert split.spec.target.names == ("no", "yes")
    assert split.train.x.dtype == torch.int64
    names = split.train.names
    assert names is not None
    for tokens, row in zip(split.train.x.tolist(), names, strict=True):
        assert element.text(tokens).split()[0] == texts[int(row)].split()[0]
