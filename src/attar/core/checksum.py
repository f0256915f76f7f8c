"""Safetensors files with checksums, in bytes that depend on nothing but the content.

A file is the length of its header in eight bytes, the header in JSON and the tensors one after another. The library
that others write them with orders the header at random, so they are written here: tensors and text in sorted order.
Two entries of the header are checksums: of the tensors, and of the header with this second entry blank.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Mapping
from operator import index
from pathlib import Path
from typing import Any, BinaryIO

import torch
from torch import Tensor

CONTENT, HEADER = "attar.content", "attar.header"
CHUNK = 1 << 20
DIGITS = 32  #: of a checksum
MOST_HEADER = 100_000_000  #: bytes, as the format says

TYPES = {
    torch.bool: "BOOL",
    torch.uint8: "U8",
    torch.uint16: "U16",
    torch.uint32: "U32",
    torch.uint64: "U64",
    torch.int8: "I8",
    torch.int16: "I16",
    torch.int32: "I32",
    torch.int64: "I64",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.float32: "F32",
    torch.float64: "F64",
}


class Changed(Exception):
    """A file is not what was written."""


def write(path: Path, tensors: Mapping[str, Tensor], text: Mapping[str, str]) -> None:
    """Write tensors on the CPU and text; the same content gives the same bytes."""
    order = sorted(tensors, key=lambda name: (-tensors[name].itemsize, name))  # so that every tensor is aligned
    digest, start = hashlib.blake2b(digest_size=DIGITS // 2), 0
    places: dict[str, Any] = {}
    for name in order:
        tensor = tensors[name]
        digest.update(_bytes(tensor))
        end = start + tensor.numel() * tensor.itemsize
        places[name] = {"dtype": TYPES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [start, end]}
        start = end
    about = {HEADER: "0" * DIGITS, CONTENT: digest.hexdigest(), **dict(sorted(text.items()))}
    header = json.dumps({"__metadata__": about, **places}, ensure_ascii=False, separators=(",", ":")).encode()
    header += b" " * (-len(header) % 8)
    header = header.replace(b"0" * DIGITS, _digest(header).encode(), 1)
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(header)) + header)
        for name in order:
            file.write(_bytes(tensors[name]))


def require_intact(path: Path, content: bool) -> bool:
    """Raise ``Changed`` if a file changed after it was written; return whether it has checksums at all.

    Args:
        path: A safetensors file.
        content: Whether the tensors are checked too, for which the whole file is read.
    """
    with path.open("rb") as file:
        raw, about, end = _header(file)
        told = about.get(HEADER), about.get(CONTENT)
        if told == (None, None) or end != path.stat().st_size:  # a file cut short is reported by reading it
            return False
        blank = raw.replace(ascii(told[0])[1:-1].encode(), b"0" * DIGITS, 1)
        if told[0] != _digest(blank):
            raise Changed("its header changed after it was written")
        digest = hashlib.blake2b(digest_size=DIGITS // 2)
        while content and (part := file.read(CHUNK)):
            digest.update(part)
    if content and digest.hexdigest() != told[1]:
        raise Changed("its content changed after it was written")
    return True


def _header(file: BinaryIO) -> tuple[bytes, dict[str, Any], int]:
    """The bytes of a header, its text and where the file ends; no text if it is no header, which reading reports."""
    start = file.read(8)
    size = struct.unpack("<Q", start)[0] if len(start) == 8 else MOST_HEADER + 1
    raw = file.read(size) if size <= MOST_HEADER else b""
    try:
        tensors = json.loads(raw)
        text = dict(tensors.pop("__metadata__"))
        end = max((index(tensor["data_offsets"][1]) for tensor in tensors.values()), default=0)
    except (ValueError, RecursionError, TypeError, KeyError, IndexError, AttributeError):
        return raw, {}, 0
    return raw, text, 8 + size + end


def _digest(header: bytes) -> str:
    return hashlib.blake2b(header, digest_size=DIGITS // 2).hexdigest()


def row_digest(row: Tensor) -> str:
    """The checksum of one tensor, for files that are read in parts."""
    return hashlib.blake2b(_bytes(row), digest_size=8).hexdigest()


def _bytes(tensor: Tensor) -> memoryview:
    return tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data
