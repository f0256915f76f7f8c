"""Small files that say or unpack to far more than fits: refused in one sentence, before memory is taken."""

import gzip
import io
import json
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, PngImagePlugin

import attar
from attar.core.errors import AttarError
from tests.data.samples import labels, pixels, write_idx
from tests.known import HANG, new_python

HUGE = 200_000_000  #: bytes that bombs become
LIMIT = "20MB"
GROWTH = 80_000_000  #: bytes by which a process may grow while it refuses them all


def npy(shape: tuple[int, ...], kind: str = "|u1") -> bytes:
    head = repr({"descr": kind, "fortran_order": False, "shape": shape}).encode()
    head += b" " * (-(len(head) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head


def archive(path: Path, **members: bytes) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as packed:
        for name, content in members.items():
            packed.writestr(f"{name}.npy", content)
    return path


def unpacks(folder: Path) -> Path:
    y = npy((20,)) + bytes(20)
    return archive(folder / "unpacks.npz", x=npy((20, HUGE // 20)) + bytes(HUGE), y=y)


def says(folder: Path) -> Path:
    return archive(folder / "says.npz", x=npy((1 << 20, 1 << 20)), y=npy((1 << 20,)))


def names(folder: Path) -> Path:
    x = npy((2, 1)) + bytes(2)
    return archive(folder / "names.npz", x=x, y=x, classes=npy((HUGE // 4,), "<U1") + bytes(HUGE))


def idx(folder: Path) -> Path:
    place = folder / "idx"
    write_idx(place / "train-labels-idx1-ubyte.gz", labels(20).astype(np.uint8))
    head = bytes((0, 0, 8, 3)) + struct.pack(">3I", 20, 1000, HUGE // 20_000)
    (place / "train-images-idx3-ubyte.gz").write_bytes(gzip.compress(head + bytes(HUGE), 1))
    return place


def picture(folder: Path, width: int = 12_000, height: int = 12_000) -> Path:
    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    rows = zlib.compress(bytes((1 + width // 8) * height), 1)
    head = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    content = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")
    for name in "ab":
        (folder / "pictures" / name).mkdir(parents=True)
        (folder / "pictures" / name / "0.png").write_bytes(content)
    return folder / "pictures"


def reviews(folder: Path) -> Path:
    """An archive whose first header announces a long one to follow."""
    head = tarfile.TarInfo("long")
    head.type, head.size = tarfile.XHDTYPE, HUGE
    place = folder / "imdb"
    place.mkdir()
    (place / "imdb.vocab").touch()
    (place / "aclImdb_v1.tar.gz").write_bytes(gzip.compress(head.tobuf() + bytes(HUGE), 1))
    return place


def sparse(name: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        with (folder / name).open("wb") as file:
            file.write(b"a,label\n")
            file.truncate(1 << 36)
        return folder / name

    return make


def tensors(folder: Path) -> Path:
    about = {"x": {"dtype": "U8", "shape": [20, HUGE // 20], "data_offsets": [0, HUGE]}}
    about |= {"y": {"dtype": "U8", "shape": [20], "data_offsets": [HUGE, HUGE + 20]}}
    text = json.dumps(about).encode()
    with (folder / "t.safetensors").open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(8 + len(text) + HUGE + 20)
    return folder / "t.safetensors"


BOMBS = [unpacks, says, names, idx, picture, reviews, *map(sparse, ("a.csv", "a.tsv", "a.txt")), tensors]


def test_bombs_are_refused_in_one_sentence_and_without_their_memory(tmp_path: Path) -> None:
    paths = [make(tmp_path) for make in BOMBS]
    code = f"""
import sys
import attar
from attar.core.cost import measure, resident
attar.load("digits")
before = resident()
with measure(0.001) as cost:
    for path in sys.argv[1:]:
        try:
            attar.load(path, max_bytes="{LIMIT}")
        except attar.AttarError as error:
            print(error)
        else:
            print("accepted", path)
print(cost.memory - before)
"""
    process = new_python(code, *paths)
    said, wrong = process.communicate(timeout=HANG)
    *lines, growth = said.splitlines()
    assert not wrong
    assert len(lines) == len(paths)
    for line, path in zip(lines, paths, strict=True):
        assert str(path) in line
        assert "needs" in line or "is shorter than its header" in line or "a line of more than" in line, line
    assert int(growth) < GROWTH


def test_a_long_class_name_is_refused(tmp_path: Path) -> None:
    y = np.array(["a", "b" * 100_000] * 10)
    with pytest.raises(AttarError, match=r"has 100,000 characters, beginning with 'bbb.*shorten it"):
        attar.load((pixels(20, 4), y))


def test_a_text_chunk_of_an_image_that_unpacks_to_more_is_refused(tmp_path: Path) -> None:
    about = PngImagePlugin.PngInfo()
    about.add_text("a", "b" * (PngImagePlugin.MAX_TEXT_CHUNK + 1), zip=True)
    for name in "ab":
        (tmp_path / name).mkdir()
        Image.fromarray(pixels(4, 4)).save(tmp_path / name / "0.png", pnginfo=about)
    with pytest.raises(AttarError, match=r"0\.png is not a complete image .*Decompressed data too large"):
        attar.load(tmp_path)


@pytest.mark.parametrize(
    ("shape", "said"), [((1,) * 9, "9 dimensions"), ((-4, 3), "dimensions"), ((2**70,), "shorter")]
)
def test_shapes_that_no_array_has_are_refused(shape: tuple[int, ...], said: str, tmp_path: Path) -> None:
    path = archive(tmp_path / "a.npz", x=npy(shape) + bytes(12), y=npy((1,)) + bytes(1))
    with pytest.raises(AttarError, match=said):
        attar.load(path)


def test_members_that_are_no_arrays_are_named(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as packed:
        packed.writestr("notes.txt", "no array")
    with pytest.raises(AttarError, match=r"holds 'notes\.txt', which is no array"):
        attar.load(tmp_path / "a.npz")


def test_eps_named_png_is_refused_and_starts_no_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pillow gives EPS to Ghostscript, if one is on the path: here one that leaves a trace."""
    trace = tmp_path / "started"
    program = tmp_path / "bin" / "gs"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\ntouch {trace}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")
    text = "%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 8\n%%EndComments\nshowpage\n%%EOF\n"
    for name in "ab":
        (tmp_path / "farm" / name).mkdir(parents=True)
        (tmp_path / "farm" / name / "0.png").write_text(text)
    with (
        pytest.raises(OSError, match=r"cannot|Unable|file"),
        Image.open(io.BytesIO(text.encode())) as i,
    ):
        i.load()
    assert trace.exists()  # without a list of formats it starts
    trace.unlink()
    with pytest.raises(AttarError, match=r"a/0\.png is not a complete image in PNG or JPEG"):
        attar.load(tmp_path / "farm")
    assert not trace.exists()
