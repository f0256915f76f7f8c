"""``python -m tests.fuzz.hostile`` writes hand-made inputs of the corpus: the kinds that once failed, one file each."""

from __future__ import annotations

import gzip
import io
import json
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy.io import savemat

from tests.data.formats.test_bombs import npy
from tests.fuzz.guard import BUDGET, samples
from tests.fuzz.mutate import stamped

CORPUS = Path(__file__).with_name("corpus")
PAST = 2 * BUDGET  #: bytes that bombs become
EPS = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 8\n%%EndComments\nshowpage\n%%EOF\n"
Inputs = Iterator[tuple[str, str, bytes]]


def arrays() -> Inputs:
    """NumPy archives: bombs, headers that are no headers, pickles, flags."""
    y = npy((20,)) + bytes(20)

    def packed(x: bytes, y: bytes = y, **more: bytes) -> bytes:
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in {"x": x, "y": y, **more}.items():
                archive.writestr(zipfile.ZipInfo(f"{name}.npy"), content, zipfile.ZIP_DEFLATED)
        return file.getvalue()

    whole = packed(npy((20, 3)) + bytes(60))
    pickled = io.BytesIO()
    np.save(pickled, np.array([{"a": 1}] * 20), allow_pickle=True)
    encrypted = bytearray(whole)
    encrypted[6] |= 1
    encrypted[whole.find(b"PK\x01\x02") + 8] |= 1
    method = bytearray(whole)
    method[8] = method[whole.find(b"PK\x01\x02") + 10] = 97
    for name, content in {
        "bomb": packed(npy((20, PAST // 20)) + bytes(PAST)),
        "says-more-than-there-is": packed(npy((1 << 20, 1 << 20))),
        "overflowing-shape": packed(npy((2**62, 2**62)) + bytes(12)),
        "broken-header": packed(b"\x93NUMPY\x01\x00\x10\x00{'descr': '|u1', "),
        "header-of-brackets": packed(b"\x93NUMPY\x01\x00\xf0\x00" + b"(" * 240),
        "pickle": packed(pickled.getvalue()),
        "encrypted": bytes(encrypted),
        "unknown-compression": bytes(method),
        "scalar-classes": packed(npy((20, 3)) + bytes(60), classes=npy((), "<U1") + bytes(4)),
        "no-dimensions": packed(npy(()) + bytes(1)),
        "date-type": packed(npy((20,), "<M8[s]") + bytes(160)),
    }.items():
        yield "npz", f"{name}@a.npz", content
    yield "npy", "overflowing-shape@x.npy", npy((2**62, 2**62)) + bytes(12)
    yield "npy", "objects@x.npy", pickled.getvalue()


def pictures() -> Inputs:
    """Images: another format by name of ours, sizes, text chunks."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    def png(width: int, height: int, *more: bytes) -> bytes:
        head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
        rows = zlib.compress(bytes((1 + width) * height if width * height < 2 * PAST else 100), 9)
        return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + b"".join(more) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")

    text = chunk(b"zTXt", b"a\0\0" + zlib.compress(bytes(10**8), 9))
    for name, content in {
        "starts-ghostscript": EPS,
        "bomb": png(12_000, 12_000),
        "more-pixels-than-fit": png(2**31 - 1, 2**31 - 1),
        "text-chunk-bomb": png(8, 8, text),
        "profile-bomb": png(8, 8, chunk(b"iCCP", b"a\0\0" + zlib.compress(bytes(10**7), 9))),
        "no-size": png(0, 0),
    }.items():
        yield "png", f"{name}@a+0.png", content
    yield "jpeg", "starts-ghostscript@a+0.jpg", EPS


def packed_files() -> Inputs:
    """IDX, archives and MATLAB files."""
    head = bytes((0, 0, 8, 3)) + struct.pack(">3I", 20, 1000, PAST // 20_000)
    yield "idx.gz", "bomb@train-images-idx3-ubyte.gz", gzip.compress(head + bytes(PAST), 9, mtime=0)
    yield "idx", "says-4-billion@train-labels-idx1-ubyte", bytes((0, 0, 8, 1)) + b"\xff" * 4
    yield "idx.gz", "bad-deflate@train-images-idx3-ubyte.gz", b"\x1f\x8b\x08\0\0\0\0\0\0\xff" + b"\xff" * 30
    matlab = io.BytesIO()
    savemat(matlab, {"X": np.zeros((4, 4, 3, 6), np.uint8), "y": np.array(["a"] * 6, dtype=object)})
    yield "svhn", "labels-of-text@train_32x32.mat", matlab.getvalue()
    yield "archive-zip", "cut@a.zip", (samples() / "archive-zip" / "a.zip").read_bytes()[:-10]
    yield "archive-tar", "no-archive@a.tar.gz", gzip.compress(b"text" * 200, mtime=0)


def texts() -> Inputs:
    """Tables, JSON and TOML that parsers fail on."""
    yield "csv", "half-a-character@a.csv", b"size,label\n1,a\xed\xa0\x80\n2,b\n" * 10
    yield "csv", "endless-number@a.csv", b"size,label\n" + b"9" * 50_000 + b",a\n2,b\n"
    yield "csv", "long-class-name@a.csv", b"size,label\n" + b"".join(b"1,%s\n2,b\n" % (b"a" * 3000) for _ in range(4))
    yield "recipe", "nested@a.toml", b"a = " + b"[" * 5000 + b"]" * 5000
    yield "study-recipe", "nested-tables@a.toml", b"a." * 2000 + b"b = 1"
    yield "study", "nested@study.json", b"[" * 20_000
    yield "study", "half-a-character@study.json", b'{"command": "\\ud800"}'
    yield "study", "not-a-number@study.json", b'{"command": NaN}'
    yield "compared", "a-list@config.json", b"[]"
    yield "compared", "methods-a-number@config.json", b'{"format": "attar-folder-2", "shared": {}, "methods": 3}'
    yield "study-log", "no-table@logs+dm-2-0.jsonl", b"[1]\n[2]\n"
    yield "study-log", "huge-numbers@logs+dm-2-0.jsonl", b'{"step": 1, "loss": 1e400}\n{"step": 1e300, "loss": 1}\n'
    yield "log-resumed", "no-step@a.jsonl", b'{"step": {}}\n"step"\n\xff\n'


def ours() -> Inputs:
    """Files of tensors whose checksums are right and whose content is not."""

    def changed(target: str, change: Callable[[dict[str, Any]], None], file: str = "a.safetensors") -> bytes:
        whole = (samples() / target / file).read_bytes()
        size = struct.unpack("<Q", whole[:8])[0]
        header = json.loads(whole[8 : 8 + size])
        change(header)
        return stamped(header, whole[8 + size :])

    def spec(**new: Any) -> Callable[[dict[str, Any]], None]:
        def change(header: dict[str, Any]) -> None:
            about = json.loads(header["__metadata__"]["spec"])
            header["__metadata__"]["spec"] = json.dumps(about | new)

        return change

    for name, new in {
        "number-as-transform": {"transform": 3.5},
        "terminal-escapes": {"name": "\x1b]0;title\x07\x1b[2J", "classes": ["\x1b[2J", "\u202eb", "c"]},
        "long-class-name": {"classes": ["a" * 3000, "b", "c"]},
        "half-a-character": {"name": "\ud800"},
        "formula": {"classes": ["=1+cmd|' /C calc'!A0", "@b", "+c"]},
        "path-as-class": {"classes": ["../../x", "/etc", "c\0d"]},
    }.items():
        for target in ("coreset", "coreset-as-data", "show", "export"):
            yield target, f"{name}@a.safetensors", changed(target, spec(**new))

    def dimensions(header: dict[str, Any]) -> None:
        header["x"]["shape"] = [1] * 192 + header["x"]["shape"]

    yield "coreset", "200-dimensions@a.safetensors", changed("coreset", dimensions)
    yield "coreset-as-data", "200-dimensions@a.safetensors", changed("coreset-as-data", dimensions)

    def double(header: dict[str, Any]) -> None:
        rows, columns = header["theta"]["shape"]
        header["theta"] |= {"dtype": "F64", "shape": [rows // 2, columns] if rows > 1 else [rows, columns // 2]}

    yield "posterior", "double@a.safetensors", changed("posterior", double)
    yield "experts", "double@trajectory-0000.safetensors", changed("experts", double, "trajectory-0000.safetensors")


def main() -> None:
    """Write all."""
    for target, name, content in [*arrays(), *pictures(), *packed_files(), *texts(), *ours()]:
        (CORPUS / target).mkdir(parents=True, exist_ok=True)
        (CORPUS / target / name).write_bytes(content)


if __name__ == "__main__":
    main()
