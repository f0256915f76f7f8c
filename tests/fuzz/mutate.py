"""Mutations of files: of any bytes, and of the structures inside, with lengths and checksums made right again.

Every mutator takes the bytes of a valid file and a source of chance, and returns the bytes of another file.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import math
import operator
import re
import struct
import tarfile
import warnings
import zipfile
import zlib
from collections.abc import Callable
from random import Random
from typing import Any

from attar.core.checksum import CONTENT, DIGITS, HEADER

Mutator = Callable[[bytes, Random], bytes]

CANARY = "canary"  #: a file beside every sample that nothing may open
NUMBERS = [0, -1, 1, 3, 255, 2**31 - 1, 2**31, 2**32, 2**53 + 1, 2**63 - 1, 2**63, 2**64, -(2**63), 10**30]
FRACTIONS = [0.5, -0.0, 1e308, 1e-320, float("nan"), float("inf"), float("-inf"), 1e39]
TEXTS = [
    "",
    " ",
    "\0",
    "\x1b]0;title\x07\x1b[2J",
    "\u202egnp.exe",
    "\x85\u2028",
    "\ud800",
    "é" * 300,
    "a" * 5000,
    "=1+cmd|' /C calc'!A0",
    "@SUM(1)",
    "<script>alert(1)</script>",
    "](http://127.0.0.1:9/x)\n# title",
    f"../{CANARY}",
    f"../../{CANARY}",
    "/etc/hostname",
    "file:///etc/hostname",
    "http://127.0.0.1:9/x",
    "hf:owner/name",
    "nan",
    "-1",
    "1e999",
    "9" * 5000,
    "{}",
    "mlp-d99w9999999",
    "convnet-d3w128",
    "__class__",
    "%s%n",
]
LITERALS = [
    "nan",
    "inf",
    "-1",
    "1e400",
    "0x10",
    "1_000",
    "9" * 400,
    "",
    " ",
    "''",
    '"a',
    "[",
    "[[",
    "{",
    "true",
    "1979-05-27",
]


def hostile(chance: Random) -> Any:
    """A value that a program may not expect."""
    deep: Any = 0
    for _ in range(chance.choice([3, 99, 300])):
        deep = [deep]
    more = [None, True, False, [], {}, [[]], [None], {"": None}, deep, [0] * 1000, list(range(-3, 3)), {"a": {"b": []}}]
    return chance.choice([chance.choice(NUMBERS), chance.choice(FRACTIONS), chance.choice(TEXTS), chance.choice(more)])


# Any bytes


def one_bit(whole: bytes, chance: Random) -> bytes:
    """One bit flipped."""
    broken = bytearray(whole or b"\0")
    broken[chance.randrange(len(broken))] ^= 1 << chance.randrange(8)
    return bytes(broken)


def some_bytes(whole: bytes, chance: Random) -> bytes:
    """Bytes changed, lost, repeated, inserted or cut off; numbers of several bytes at their limits."""
    broken = bytearray(whole or b"\0")
    for _ in range(chance.choice([1, 1, 2, 4, 16])):
        place = chance.randrange(len(broken)) if broken else 0
        size = chance.choice([1, 2, 4, 8, 16, 100])
        kind = chance.randrange(8)
        if kind == 0:
            broken[place : place + 1] = bytes([chance.choice([0, 1, 127, 128, 255, chance.randrange(256)])])
        elif kind == 1:
            broken = broken[:place]
        elif kind == 2:
            del broken[place : place + size]
        elif kind == 3:
            broken[place:place] = chance.randbytes(size)
        elif kind == 4:
            broken[place:place] = broken[place : place + size] * chance.choice([1, 2, 50])
        elif kind == 5:
            broken[place : place + size] = bytes(size)
        else:
            width = chance.choice([2, 4, 8])
            number = chance.choice([0, 1, 2 ** (8 * width) - 1, 2 ** (8 * width - 1), 2 ** (8 * width - 1) - 1])
            broken[place : place + width] = number.to_bytes(width, chance.choice(["big", "little"]))
    return bytes(broken)


def another_file(whole: bytes, chance: Random) -> bytes:
    """Nothing, noise, or the start of a file of another format."""
    starts = [
        b"",
        b"\0" * 64,
        b"\x80\x04\x95",
        b"PK\x03\x04",
        b"PAR1",
        b"\x93NUMPY\x01\x00",
        b"%!PS-Adobe-3.0 EPSF-3.0\n",
    ]
    return chance.choice([*starts, b"{", b"GIF89a", b"\x89PNG\r\n\x1a\n", b"\xff\xfe", whole[::-1]]) + chance.randbytes(
        chance.choice([0, 0, 7, 200])
    )


# Text


def some_text(whole: bytes, chance: Random) -> bytes:
    """Lines swapped, lost or repeated; words replaced by what a parser may not expect."""
    lines = whole.decode("utf-8", "replace").split("\n")
    for _ in range(chance.choice([1, 1, 3])):
        place = chance.randrange(len(lines))
        kind = chance.randrange(6)
        if kind == 0:
            lines.insert(place, lines[chance.randrange(len(lines))])
        elif kind == 1 and len(lines) > 1:
            del lines[place]
        elif kind == 2:
            lines[place] = chance.choice(TEXTS)
        else:
            words = re.split(r"([,;=\t \[\]:()]+)", lines[place])
            words[chance.randrange(len(words))] = chance.choice([*TEXTS, *LITERALS, "\t", "\r", '"', "\\"])
            lines[place] = "".join(words)
    return "\n".join(lines).encode("utf-8", "surrogatepass")


# JSON


def json_tree(whole: bytes, chance: Random) -> bytes:
    """A few places of a JSON file replaced, removed or added."""
    return json.dumps(tree(json.loads(whole), chance)).encode()


def json_lines(whole: bytes, chance: Random) -> bytes:
    """The same for a file with JSON on every line."""
    lines = whole.splitlines()
    place = chance.randrange(len(lines))
    lines[place] = json_tree(lines[place], chance)
    return b"\n".join(lines) + b"\n"


def tree(value: Any, chance: Random) -> Any:
    """Lists and tables with a few places replaced, removed or added."""
    for _ in range(chance.choice([1, 1, 2, 5])):
        places = list(_places(value))
        if not places:
            return hostile(chance)
        holder, key = chance.choice(places)
        kind = chance.randrange(5)
        if kind == 0:
            del holder[key]
        elif kind == 1 and isinstance(holder, dict):
            holder[chance.choice(TEXTS)] = hostile(chance)
        elif kind == 2 and isinstance(holder[key], str):
            holder[key] = holder[key] + chance.choice(TEXTS)
        elif kind == 2 and isinstance(holder[key], list):
            holder[key] = holder[key] * chance.choice([0, 2, 30])
        else:
            holder[key] = hostile(chance)
    return value


def _places(value: Any) -> Any:
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in pairs:
        yield value, key
        yield from _places(inner)


# Safetensors

WIDTHS = {
    "BOOL": 1,
    "U8": 1,
    "I8": 1,
    "F8_E4M3": 1,
    "I16": 2,
    "F16": 2,
    "BF16": 2,
    "I32": 4,
    "F32": 4,
    "I64": 8,
    "F64": 8,
}


def tensors(whole: bytes, chance: Random) -> bytes:
    """Text, types, shapes and numbers changed, and the checksums made right again."""
    size = struct.unpack("<Q", whole[:8])[0]
    header, body = json.loads(whole[8 : 8 + size]), bytearray(whole[8 + size :])
    about = header.get("__metadata__", {})
    for _ in range(chance.choice([1, 1, 2, 4])):
        names = [name for name in header if name != "__metadata__"]
        name = chance.choice(names or [""])
        kind = chance.randrange(8)
        if kind <= 2 and about:
            _text(about, chance)
        elif not names:
            continue
        elif kind == 3:
            header[chance.choice(["x", "y", "theta", "gen", "extra.a", "weights", *TEXTS])] = header.pop(name)
        elif not isinstance(header[name], dict):
            continue
        elif kind == 4:
            header[name]["dtype"] = chance.choice([*WIDTHS, "F4", "", "U64"])
        elif kind == 5 and isinstance(shape := header[name].get("shape"), list):
            header[name]["shape"] = _shape(shape, chance)
        elif kind == 6 and body:
            offsets = _whole(header[name])
            for place in range(*offsets, chance.choice([1, 4, 8, 64])):
                body[place : place + 1] = bytes([chance.choice([0, 255, 127, chance.randrange(256)])])
        else:
            header[name] = tree(header[name], chance)
    if chance.random() < 0.8:
        body = _fitting(header, body)
    return stamped(header, bytes(body)) if chance.random() < 0.9 else _assembled(header, bytes(body))


def _whole(about: Any) -> tuple[int, int]:
    """The bytes of a tensor; none if an earlier mutation left no such numbers."""
    match about:
        case {"data_offsets": [int(first), int(last)]} if 0 <= first <= last < 10**7:
            return first, last
    return 0, 0


def _text(about: dict[str, str], chance: Random) -> None:
    """One text of a header changed; where it is JSON, within."""
    key = chance.choice(list(about))
    try:
        about[key] = json.dumps(tree(json.loads(about[key]), chance))
    except ValueError:
        about[key] = chance.choice([*TEXTS, about[key] + "x", about[key][:-1]])
    if chance.random() < 0.1:
        del about[key]


def _shape(shape: list[int], chance: Random) -> list[int]:
    changed = list(shape) or [1]
    place = chance.randrange(len(changed))
    options = [[*changed, 1], [1, *changed], changed[:-1], changed[::-1], [1] * 20]
    side = changed[place] if isinstance(changed[place], int) else 1
    changed[place] = chance.choice([0, 1, side + 1, max(0, side - 1), 2**40, -1])
    return chance.choice([changed, changed, *options])


def _fitting(header: dict[str, Any], body: bytearray) -> bytearray:
    """Offsets and a body that fit the types and shapes, so that only their meaning is wrong."""
    found = bytearray()
    for name, about in header.items():
        try:
            count = math.prod(map(operator.index, about["shape"])) * WIDTHS[about["dtype"]]
        except (KeyError, TypeError, ValueError):
            continue
        if name == "__metadata__" or not 0 <= count < 10**6:
            continue
        part = bytes(body[slice(*_whole(about))])
        part = (part * (count // len(part) + 1) if part else bytes(count))[:count]
        about["data_offsets"] = [len(found), len(found) + count]
        found += part
    return found


def stamped(header: dict[str, Any], body: bytes) -> bytes:
    """A file whose checksums are right."""
    about = header.get("__metadata__")
    if not isinstance(about, dict) or HEADER not in about:
        return _assembled(header, body)
    about[HEADER], about[CONTENT] = "0" * DIGITS, hashlib.blake2b(body, digest_size=DIGITS // 2).hexdigest()
    about = {HEADER: about.pop(HEADER), **about}
    text = _padded({"__metadata__": about, **{name: rest for name, rest in header.items() if name != "__metadata__"}})
    digest = hashlib.blake2b(text, digest_size=DIGITS // 2).hexdigest().encode()
    return struct.pack("<Q", len(text)) + text.replace(b"0" * DIGITS, digest, 1) + body


def _assembled(header: dict[str, Any], body: bytes) -> bytes:
    text = _padded(header)
    return struct.pack("<Q", len(text)) + text + body


def _padded(header: dict[str, Any]) -> bytes:
    text = json.dumps(header, separators=(",", ":")).encode()
    return text + b" " * (-len(text) % 8)


# Archives


def zipped(inner: Mutator) -> Mutator:
    """A mutator of zip files: members by ``inner``, with right sums, or their names, sizes and flags."""

    def mutate(whole: bytes, chance: Random) -> bytes:
        with zipfile.ZipFile(io.BytesIO(whole)) as old:
            members = [(info.filename, old.read(info)) for info in old.infolist()]
        place = chance.randrange(len(members))
        name, content = members[place]
        kind = chance.randrange(6)
        if kind == 0:
            members[place] = chance.choice([f"../{name}", f"/{name}", "", "a.npy", name[:-1]]), content
        elif kind == 1:
            members.append(members[place] if chance.random() < 0.5 else ("notes.txt", b"text"))
        elif kind == 2:
            del members[place]
        else:
            members[place] = name, inner(content, chance)
        new = io.BytesIO()
        method = chance.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
        with warnings.catch_warnings(), zipfile.ZipFile(new, "w", method) as packed:
            warnings.simplefilter("ignore")  # duplicate names
            for name, content in members:
                packed.writestr(zipfile.ZipInfo(name or "x"), content, method)  # which has no time of its own
        return _claims(new.getvalue(), chance) if chance.random() < 0.2 else new.getvalue()

    return mutate


def _claims(whole: bytes, chance: Random) -> bytes:
    """A zip file whose directory says other flags, methods, sums or sizes."""
    broken = bytearray(whole)
    place = whole.find(b"PK\x01\x02")
    at, width = chance.choice([(8, 2), (10, 2), (16, 4), (20, 4), (24, 4), (42, 4)])
    broken[place + at : place + at + width] = chance.choice([1, 0, 99, 2 ** (8 * width) - 1]).to_bytes(width, "little")
    return bytes(broken)


def npy(whole: bytes, chance: Random) -> bytes:
    """A .npy file with another description of its array."""
    end = 10 + struct.unpack("<H", whole[8:10])[0]
    text, body = whole[10:end].decode(), whole[end:]
    kinds = [
        "<f4",
        "<f8",
        "|u1",
        "<i8",
        "|O",
        "<U9",
        "|S5",
        "|V8",
        "<m8[s]",
        "<c8",
        "|b1",
        "<f2",
        "(2,2)<f4",
        ">i2",
        "<U0",
    ]
    shapes = [
        "()",
        "(0,)",
        "(1,)",
        "(-1, 3)",
        f"({2**40}, {2**40})",
        "(1,) * 3",
        "(" + "1," * 70 + ")",
        "None",
        "((1,),)",
    ]
    kind = chance.randrange(5)
    if kind == 0:
        text = re.sub(r"'descr': '[^']*'", f"'descr': '{chance.choice(kinds)}'", text)
    elif kind == 1:
        text = re.sub(r"'shape': \([^)]*\)", f"'shape': {chance.choice(shapes)}", text)
    elif kind == 2:
        text = text.replace("False", chance.choice(["True", "None", "__import__('os')", "1" * 5000, "(" * 300]), 1)
    elif kind == 3:
        text = some_text(text.encode(), chance).decode("utf-8", "replace")
    else:
        body = some_bytes(body, chance) if chance.random() < 0.5 else body[::-1]
    raw = text.rstrip("\n").encode("latin1", "replace")[:60_000]
    raw += b" " * (-(len(raw) + 11) % 64) + b"\n"
    version = chance.choice([b"\x01\x00"] * 8 + [b"\x03\x00", b"\x09\x00"])
    return b"\x93NUMPY" + version + struct.pack("<H", len(raw)) + raw + body


def gzipped(inner: Mutator) -> Mutator:
    """A mutator of what is in a gzip file."""

    def mutate(whole: bytes, chance: Random) -> bytes:
        content = inner(gzip.decompress(whole), chance)
        bomb = bytes(chance.choice([0] * 20 + [10**8]))
        return gzip.compress(content + bomb, 1, mtime=0)

    return mutate


def tarred(whole: bytes, chance: Random) -> bytes:
    """A tar file with other kinds, names, sizes and contents of members."""
    new = io.BytesIO()
    with tarfile.open(fileobj=io.BytesIO(whole)) as old, tarfile.open(fileobj=new, mode="w") as packed:
        members = [(info, source.read()) for info in old if (source := old.extractfile(info)) is not None]
        place = chance.randrange(len(members))
        for number, (info, content) in enumerate(members):
            if number == place:
                kind = chance.randrange(5)
                if kind == 0:
                    info.type, info.linkname = chance.choice([tarfile.SYMTYPE, tarfile.LNKTYPE]), f"../{CANARY}"
                elif kind == 1:
                    info.type = chance.choice(
                        [tarfile.DIRTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE, b"Z", tarfile.XHDTYPE]
                    )
                elif kind == 2:
                    info.name = chance.choice([f"../{info.name}", f"/{info.name}", info.name + "\0x", "é" * 200])
                elif kind == 3:
                    content = some_text(content, chance)
                else:
                    content = chance.randbytes(50)
                info.size = len(content)
            packed.addfile(info, io.BytesIO(content))
    return new.getvalue() if chance.random() < 0.7 else some_bytes(new.getvalue(), chance)


# Images and arrays of bytes


def png(whole: bytes, chance: Random) -> bytes:
    """A PNG file with other chunks, whose sums are right."""
    chunks, place = [], 8
    while place < len(whole):
        size = struct.unpack(">I", whole[place : place + 4])[0]
        chunks.append((whole[place + 4 : place + 8], whole[place + 8 : place + 8 + size]))
        place += 12 + size
    at = chance.randrange(len(chunks))
    name, body = chunks[at]
    kind = chance.randrange(6)
    if kind == 0:
        wide, high = chance.choice([(0, 8), (1, 1), (8, 9), (2**31 - 1, 2**31 - 1), (30_000, 30_000), (2**31, 1)])
        depth, colour = chance.choice([1, 2, 4, 8, 16, 3, 0]), chance.choice([0, 2, 3, 4, 6, 1, 9])
        chunks[0] = b"IHDR", struct.pack(">IIBBBBB", wide, high, depth, colour, 0, 0, chance.choice([0, 1, 7]))
    elif kind == 1:
        more = [b"tEXt", b"zTXt", b"iTXt", b"iCCP", b"PLTE", b"tRNS", b"gAMA", b"eXIf", b"acTL", b"fdAT", b"abcd"]
        text = b"a\0\0" + zlib.compress(bytes(chance.choice([10, 10**7])))
        chunks.insert(max(1, at), (chance.choice(more), chance.choice([b"", chance.randbytes(20), text])))
    elif kind == 2:
        del chunks[at]
    elif kind == 3:
        chunks.insert(at, chunks[chance.randrange(len(chunks))])
    elif kind == 4:
        chunks = [(n, zlib.compress(bytes(10**7)) if n == b"IDAT" else b) for n, b in chunks]
    else:
        chunks[at] = name, some_bytes(body, chance)
    return whole[:8] + b"".join(
        struct.pack(">I", len(b)) + n + b + struct.pack(">I", zlib.crc32(n + b)) for n, b in chunks
    )


def idx(whole: bytes, chance: Random) -> bytes:
    """An IDX file with another header."""
    broken = bytearray(whole)
    place = chance.choice(range(0, 4 + 4 * whole[3], 4))
    broken[place : place + 4] = struct.pack(">I", chance.choice([0, 1, 2, 5, 41, 0x803, 0x801, 2**31, 2**32 - 1]))
    return bytes(broken)
