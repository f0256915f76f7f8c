"""Files with one labelled sentence on every line, and folders of texts."""

import os
import tarfile
from pathlib import Path

import pytest
import torch

from attar.core.errors import AttarError
from attar.data import Split, Tokens
from attar.data.load import load

CACHE = Path(os.environ.get("ATTAR_DATA", "~/.cache/attar/data")).expanduser()
KINDS = ("NUM:dist", "NUM:date", "HUM:ind", "HUM:desc")


def trec(path: Path, n: int = 40) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{KINDS[k % 4]} What is {KINDS[k % 4][4:]} number {k} ?\n" for k in range(n)))
    return path


def sst(folder: Path, pattern: str, line: str = "{label} a film of {label} stars\n") -> None:
    for part, n in (("train", 40), ("dev", 10), ("test", 15)):
        path = folder / pattern.format(part)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(line.format(label=k % 5) for k in range(n)))


def texts(split: Split) -> list[str]:
    element = split.spec.element
    assert isinstance(element, Tokens)
    return [element.text(row) for row in split.test.x.tolist()]


def test_both_tasks_of_trec_are_read_from_the_same_files(tmp_path: Path) -> None:
    trec(tmp_path / "trec" / "train_5500.label")
    trec(tmp_path / "trec" / "TREC_10.label", 8)
    coarse, fine = (load(name, root=tmp_path, download=False) for name in ("trec6", "trec50"))
    assert coarse.spec.target.names == ("HUM", "NUM")
    assert fine.spec.target.names == tuple(sorted(KINDS))
    assert (len(coarse.train) + len(coarse.val), len(coarse.test)) == (40, 8)
    assert texts(fine)[0] == "what is dist number 0 ?"
    assert [coarse.spec.target.names[label] for label in coarse.test.y] == ["NUM", "NUM", "HUM", "HUM"] * 2
    assert torch.equal(load(tmp_path / "trec", target="fine").test.y, fine.test.y)
    assert load(tmp_path / "trec" / "TREC_10.label").spec.target.names == ("HUM", "NUM")


def test_the_byte_of_the_official_file_that_is_not_utf_8_is_read_as_a_space(tmp_path: Path) -> None:
    path = trec(tmp_path / "train_5500.label")
    path.write_bytes(path.read_bytes() + 10 * b"HUM:ind Which is the sister\xf0city ?\n")
    element = load(path).spec.element
    assert isinstance(element, Tokens)
    assert {"sister", "city"} <= set(element.vocabulary)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"NUM How far ?\n", "Line 41 of .* is not COARSE:fine and a question: correct that line"),
        (b"NUM:dist\n", "Line 41 of .* is not COARSE:fine and a question"),
        (b"NUM:dist Wie gro\xdf ?\n", "Line 41 of .* is not text in UTF-8: save the file in UTF-8"),
    ],
)
def test_a_bad_line_of_trec_is_named(line: bytes, words: str, tmp_path: Path) -> None:
    path = trec(tmp_path / "mine.label")
    path.write_bytes(path.read_bytes() + line)
    with pytest.raises(AttarError, match=words):
        load(path)
    with pytest.raises(AttarError, match="Unknown target of TREC 'fin'"):
        load(path, target="fin")


TREE = "({label} (2 A) (2 (3 film) (2 (2 of) (1 (2 {label}) (2 -LRB-)))))\n"


@pytest.mark.parametrize(
    ("pattern", "line", "first"),
    [
        ("stsa.fine.{}", "{label} a film of {label} stars\n", "a film of 0 stars"),
        ("trees/{}.txt", TREE, "a film of 0 ("),
    ],
)
def test_sst_is_read_as_lines_and_as_trees(pattern: str, line: str, first: str, tmp_path: Path) -> None:
    sst(tmp_path / "sst5", pattern, line)
    split = load("sst5", root=tmp_path)
    assert split.spec.target.names == ("very negative", "negative", "neutral", "positive", "very positive")
    assert (len(split.train), len(split.val), len(split.test)) == (40, 10, 15)
    assert texts(split)[0] == first
    assert split.test.y.tolist() == [0, 1, 2, 3, 4] * 3
    assert torch.equal(load(tmp_path / "sst5").test.x, split.test.x)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("no label here\n", "Line 41 of .* has no label: write the label, a tab and the sentence"),
        ("up\t \n", "Line 41 of .* has a label and no sentence"),
        ("(3 (2 it) (2 ends)\n", "Line 41 of .* is not a complete tree"),
        ("(3)\n", "Line 41 of .* is not a complete tree"),
    ],
)
def test_a_bad_line_is_named(line: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "films.txt"
    path.write_text("".join(f"{('up', 'down')[k % 2]}\tfilm {k}\n" for k in range(40)))
    assert load(path).spec.target.names == ("down", "up")
    path.write_text(path.read_text() + line)
    with pytest.raises(AttarError, match=words):
        load(path)


def test_sst_with_other_labels_is_refused(tmp_path: Path) -> None:
    sst(tmp_path / "sst5", "stsa.fine.{}", "{label}1 a film\n")
    with pytest.raises(AttarError, match=r"SST has the labels 0\.\.4"):
        load("sst5", root=tmp_path)


def reviews(folder: Path) -> Path:
    for part in ("train", "test"):
        for label, word in (("pos", "good"), ("neg", "bad"), ("unsup", "some")):
            (folder / part / label).mkdir(parents=True)
            for k in range(12):
                (folder / part / label / f"{k}_{k % 5}.txt").write_text(f"A {word} film.<br /><br />Number {k}")
    return folder


def test_imdb_is_read_unpacked_and_from_its_archive_alike(tmp_path: Path) -> None:
    inside = reviews(tmp_path / "one" / "imdb" / "aclImdb")
    (inside / "imdb.vocab").write_text("the\n")
    (tmp_path / "two" / "imdb").mkdir(parents=True)
    with tarfile.open(tmp_path / "two" / "imdb" / "aclImdb_v1.tar.gz", "w:gz") as tar:
        tar.add(inside, "aclImdb")
    unpacked, packed = (load("imdb", root=tmp_path / place, download=False) for place in ("one", "two"))
    assert unpacked.spec.target.names == ("neg", "pos")
    assert len(unpacked.test) == 24
    assert unpacked.train.fingerprint == packed.train.fingerprint == load(inside).train.fingerprint
    assert unpacked.train.names == packed.train.names
    assert "neg/0_0.txt" in (unpacked.test.names or [])
    assert texts(unpacked)[0] == "a bad film . number 0"


def test_a_damaged_archive_of_reviews_is_refused(tmp_path: Path) -> None:
    (tmp_path / "imdb").mkdir()
    (tmp_path / "imdb" / "aclImdb_v1.tar.gz").write_bytes(b"\x1f\x8b\x08 no archive")
    with pytest.raises(AttarError, match=r"aclImdb_v1\.tar\.gz is not a complete archive of reviews"):
        load("imdb", root=tmp_path, download=False)


def test_a_folder_of_texts_per_class(tmp_path: Path) -> None:
    split = load(reviews(tmp_path / "films"))
    assert split.spec.target.names == ("neg", "pos", "unsup")
    assert "pos/3_3.txt" in [*(split.train.names or []), *(split.val.names or [])]


def test_an_empty_class_text_and_a_text_that_is_not_utf_8_are_refused(tmp_path: Path) -> None:
    folder = reviews(tmp_path)
    path = folder / "train" / "neg" / "3_3.txt"
    for content, words in (
        (b" \n", r"training set of .* has an empty text, neg/3_3\.txt: fill it in or leave it out"),
        (b"sch\xf6n", r"Line 1 of .*neg/3_3\.txt is not text in UTF-8"),
    ):
        path.write_bytes(content)
        with pytest.raises(AttarError, match=words):
            load(folder)
    path.write_text("fine")
    (folder / "train" / "other").mkdir()
    with pytest.raises(AttarError, match=r"train/other holds no \.txt file: add texts of this class, or remove"):
        load(folder)


def test_the_official_files_have_their_published_sizes() -> None:
    if not (CACHE / "trec" / "train_5500.label").is_file():
        pytest.skip("TREC is not on disk")
    for name, classes in (("trec6", 6), ("trec50", 50)):
        split = load(CACHE / "trec", target="fine" if name == "trec50" else None)
        assert (len(split.train) + len(split.val), len(split.test), split.classes) == (5452, 500, classes)


def test_known_texts_get_the_vectors_of_the_glove_folder(tmp_path: Path) -> None:
    sst(tmp_path / "sst5", "stsa.fine.{}")
    (tmp_path / "glove").mkdir()
    (tmp_path / "glove" / "glove.2d.txt").write_text("film 1 2\na 3 4\nof 1 1\nstars 0 1\n")
    with pytest.warns(UserWarning, match=r"5 of the 9 words .* have no vector in glove\.2d\.txt"):
        split = load("sst5", root=tmp_path)
    assert split.spec.transform.tensors()["table"].shape == (11, 2)
    assert split.origin is not None
    assert split.origin.vectors is None  # the default
    assert load(tmp_path / "sst5").spec.transform.tensors()["table"].shape == (11, 64)
