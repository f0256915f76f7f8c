"""Formats of data: arrays, tables, texts, images, archives."""

from __future__ import annotations

import io
import tarfile
import zipfile
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import torch
from PIL import Image

import attar
from attar.core import budget
from attar.data.archives import unpack
from attar.data.formats import tiny_imagenet
from attar.data.mapped import Mapped
from attar.data.sources import Remote
from attar.data.verified import RECORD
from tests.data.formats.test_tiny_imagenet import tiny
from tests.data.samples import labels, pixels, write_idx
from tests.fuzz import mutate
from tests.fuzz.mutate import gzipped, zipped
from tests.fuzz.target import ANY, TENSORS, TEXT, TREE, Target


def _npz(folder: Path) -> None:
    np.savez(folder / "a.npz", x=pixels(40, 4, 4), y=labels(40), classes=np.array(["a", "b", "c"]))


def _npy(folder: Path) -> None:
    np.save(folder / "x.npy", pixels(40, 1, 4, 4))
    np.save(folder / "y.npy", labels(40))


def _mapped(folder: Path) -> object:
    mapped = Mapped(folder / "x.npy", folder / "y.npy")
    return mapped.fingerprint


def _kuzushiji(folder: Path) -> None:
    for part in ("train", "test"):
        np.savez_compressed(folder / f"k49-{part}-imgs.npz", pixels(98, 4, 4))
        np.savez_compressed(folder / f"k49-{part}-labels.npz", labels(98, 49))


def _idx(folder: Path, suffix: str = "") -> None:
    write_idx(folder / f"train-images-idx3-ubyte{suffix}", pixels(40, 5, 4))
    write_idx(folder / f"train-labels-idx1-ubyte{suffix}", labels(40, 4).astype(np.uint8))


def _cifar(folder: Path) -> None:
    for name in (*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"):
        records = np.concatenate([labels(20, 10)[:, None].astype(np.uint8), pixels(20, 3072)], axis=1)
        (folder / f"{name}.bin").write_bytes(records.tobytes())


def _svhn(folder: Path, packed: bool = True) -> None:
    from scipy import io as matlab

    content = {"X": pixels(40, 3, 4, 4).transpose(2, 3, 1, 0), "y": (labels(40, 10) + 1)[:, None]}
    matlab.savemat(folder / "train_32x32.mat", content, do_compression=packed)


def _csv(folder: Path) -> None:
    rows = [f"{k % 9},{k % 7 / 3},{('red', 'blue', '')[k % 3]},2024-01-{1 + k % 28},{'abc'[k % 3]}" for k in range(40)]
    (folder / "a.csv").write_text("\n".join(["size,weight,colour,when,label", *rows]))


def _texts(folder: Path) -> None:
    rows = [f'"the word {k} of {k % 5}",{"abc"[k % 3]},{k}' for k in range(40)]
    (folder / "a.csv").write_text("\n".join(["text,label,number", *rows]))


def _tsv(folder: Path) -> None:
    (folder / "a.tsv").write_text("\n".join(f"class {'abc'[k % 3]}\tthe word {k} of {k % 5}" for k in range(40)))


def _trees(folder: Path) -> None:
    (folder / "a.txt").write_text("\n".join(f"({k % 3} (2 it) (3 (2 -LRB-) (1 w{k % 7})))" for k in range(40)))


def _trec(folder: Path) -> None:
    rows = [f"{'ABC'[k % 3]}:kind{k % 3} what is the word {k % 9} ?" for k in range(40)]
    (folder / "train_5500.label").write_text("\n".join(rows))


def _glove(folder: Path) -> None:
    _tsv(folder)
    words = ["the", "word", "of", *map(str, range(20))]
    gen = np.random.default_rng(0)
    (folder / "vectors.txt").write_text(
        "\n".join(f"{word} {' '.join(f'{v:.3f}' for v in gen.normal(size=6))}" for word in words)
    )


def _classes(folder: Path, suffix: str) -> None:
    for name in "abc":
        (folder / name).mkdir()
        for k in range(4):
            image = Image.fromarray(pixels(8, 8, 3, seed=k) if suffix == "jpg" else pixels(8, 8, seed=k))
            image.save(folder / name / f"{k}.{suffix}")


def _tiny(folder: Path) -> None:
    unpacked = folder.with_name(folder.name + "-unpacked")
    tiny(unpacked)
    with zipfile.ZipFile(folder / "tiny-imagenet-200.zip", "w", zipfile.ZIP_DEFLATED) as packed:
        for path in sorted(unpacked.rglob("*")):
            packed.write(path, f"tiny-imagenet-200/{path.relative_to(unpacked).as_posix()}")


def _read_tiny(folder: Path) -> object:
    with budget.within():
        return tiny_imagenet.read(folder)


def _embedded(folder: Path) -> object:
    return attar.load(folder / "a.tsv", vectors=folder / "vectors.txt")


def _imdb(folder: Path) -> None:
    (folder / "imdb.vocab").touch()
    with tarfile.open(folder / "aclImdb_v1.tar.gz", "w:gz") as packed:
        for part in ("train", "test"):
            for kind in ("neg", "pos"):
                for k in range(6):
                    content = f"a {kind} film<br />number {k}".encode()
                    about = tarfile.TarInfo(f"aclImdb/{part}/{kind}/{k}_1.txt")
                    about.size = len(content)
                    packed.addfile(about, io.BytesIO(content))


WANTED = ("inside/a.bin", "inside/b.bin")


def _archive(folder: Path, kind: str) -> None:
    if kind == "zip":
        with zipfile.ZipFile(folder / "a.zip", "w", zipfile.ZIP_DEFLATED) as packed:
            for name in WANTED:
                packed.writestr(name, bytes(500))
        return
    with tarfile.open(folder / "a.tar.gz", "w:gz") as tar:
        for name in WANTED:
            about = tarfile.TarInfo(name)
            about.size = 500
            tar.addfile(about, io.BytesIO(bytes(500)))


def _unpack(folder: Path, kind: str) -> object:
    before = {path.name for path in folder.parent.iterdir()}
    try:
        unpack(folder / f"a.{kind}", Remote(f"https://host/a.{kind}", "", WANTED), folder)
    finally:
        assert {path.name for path in folder.parent.iterdir()} == before, "unpacked outside of the folder"
        inside = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
        assert inside <= {*WANTED, f"a.{kind}", RECORD}, f"unpacked {inside}"
    return None


def _parquet(folder: Path) -> None:
    from pyarrow import parquet, table

    parquet.write_table(table({"size": np.arange(60.0), "label": labels(60)}), folder / "a.parquet")


def _hf(folder: Path, kind: str = "numbers") -> None:
    import datasets

    datasets.disable_progress_bars()
    columns: dict[str, Any] = {"label": [k % 3 for k in range(30)]}
    if kind == "images":
        columns["image"] = [Image.fromarray(pixels(4, 4, seed=k)) for k in range(30)]
    else:
        columns["words"] = [f"text {k}" for k in range(30)]
    datasets.Dataset.from_dict(columns).save_to_disk(str(folder))


def table_of(chance: Random) -> Any:
    """A table with columns of any kind."""
    import pyarrow as pa

    n = chance.choice([0, 1, 40])
    index = list(range(n))
    made: list[Any] = [
        pa.array([float(k) for k in index]),
        pa.array([chance.choice([None, k]) for k in index], pa.int64()),
        pa.array([chance.choice(mutate.TEXTS[:5]) for _ in index], pa.string()),
        pa.array([[k] * (k % 3) for k in index], pa.list_(pa.int8())),
        pa.array(
            [{"path": "/etc/hostname", "bytes": None}] * n, pa.struct({"bytes": pa.binary(), "path": pa.string()})
        ),
        pa.array([b"\0"] * n, pa.binary()),
        pa.array([chance.choice(mutate.FRACTIONS[:4]) for _ in index], pa.float64()),
        pa.array(["a", "b"] * (n // 2) + ["c"] * (n % 2)).dictionary_encode(),
        pa.array([k % 3 for k in index], pa.uint64()),
        pa.array([2**64 - 1] * n, pa.uint64()),
        pa.nulls(n),
        pa.array(index, pa.timestamp("ns")),
        pa.array([bool(k % 2) for k in index]),
        pa.array(index, pa.decimal128(20, 2)),
        pa.array(index, pa.duration("s")),
        pa.array([[[k]] for k in index], pa.list_(pa.list_(pa.float32()))),
    ]
    names = ["label", chance.choice(["text", "image", "a", *mutate.TEXTS[3:6]]), "b", "c", "label"][
        : chance.randint(1, 5)
    ]
    return pa.table([chance.choice(made) for _ in names], names=names)


def parquet_table(whole: bytes, chance: Random) -> bytes:
    """A Parquet file of another table."""
    from pyarrow import parquet

    file = io.BytesIO()
    kind = chance.choice(["none", "snappy", "gzip", "zstd"])
    parquet.write_table(table_of(chance), file, compression=kind, use_dictionary=chance.random() < 0.5)
    return file.getvalue()


def arrow_table(whole: bytes, chance: Random) -> bytes:
    """An Arrow stream of another table."""
    import pyarrow as pa

    file, table = io.BytesIO(), table_of(chance)
    with pa.ipc.new_stream(file, table.schema) as writer:
        writer.write_table(table)
    return file.getvalue()


def _tensors(folder: Path) -> None:
    from safetensors.torch import save_file

    save_file({"x": torch.rand(40, 3), "y": torch.arange(40) % 3}, folder / "a.safetensors")


def _load(folder: Path, name: str = "", **options: Any) -> object:
    return attar.load(folder / name if name else folder, **options)


TARGETS = {
    "npz": Target(_npz, partial(_load, name="a.npz"), ["a.npz"], [*[zipped(mutate.npy)] * 4, *ANY], 8),
    "npy": Target(_npy, _mapped, ["*.npy"], [*[mutate.npy] * 4, *ANY]),
    "kuzushiji49": Target(_kuzushiji, _load, ["*.npz"], [zipped(mutate.npy), *ANY], 2),
    "idx": Target(_idx, _load, ["*-ubyte"], [mutate.idx, mutate.idx, *ANY]),
    "idx.gz": Target(
        partial(_idx, suffix=".gz"), _load, ["*.gz"], [gzipped(mutate.idx), gzipped(mutate.some_bytes), *ANY]
    ),
    "cifar": Target(_cifar, _load, ["*.bin"], ANY, 1),
    "svhn": Target(_svhn, _load, ["*.mat"], ANY),
    "svhn-plain": Target(partial(_svhn, packed=False), _load, ["*.mat"], ANY),
    "csv": Target(_csv, partial(_load, name="a.csv"), ["a.csv"], TEXT, 8),
    "csv-texts": Target(_texts, partial(_load, name="a.csv"), ["a.csv"], TEXT),
    "tsv": Target(_tsv, partial(_load, name="a.tsv"), ["a.tsv"], TEXT),
    "trees": Target(_trees, partial(_load, name="a.txt"), ["a.txt"], TEXT),
    "trec": Target(_trec, partial(_load, target="fine"), ["*.label"], TEXT),
    "glove": Target(_glove, _embedded, ["vectors.txt"], TEXT),
    "png": Target(partial(_classes, suffix="png"), _load, ["*/*.png"], [*[mutate.png] * 4, *ANY], 8),
    "jpeg": Target(partial(_classes, suffix="jpg"), _load, ["*/*.jpg"], ANY),
    "tiny-imagenet": Target(_tiny, _read_tiny, ["*.zip"], [zipped(mutate.some_bytes), zipped(mutate.some_text), *ANY]),
    "imdb": Target(_imdb, _load, ["*.tar.gz"], [gzipped(mutate.tarred), gzipped(mutate.some_bytes), *ANY]),
    "archive-zip": Target(
        partial(_archive, kind="zip"), partial(_unpack, kind="zip"), ["a.zip"], [zipped(mutate.some_bytes), *ANY], 2
    ),
    "archive-tar": Target(
        partial(_archive, kind="tar.gz"),
        partial(_unpack, kind="tar.gz"),
        ["a.tar.gz"],
        [gzipped(mutate.tarred), *ANY],
        2,
    ),
    "parquet": Target(_parquet, partial(_load, name="a.parquet"), ["a.parquet"], [parquet_table, *ANY], 1),
    "arrow": Target(_hf, _load, ["*.arrow"], [arrow_table, *ANY], 1),
    "arrow-images": Target(partial(_hf, kind="images"), _load, ["*.arrow"], [arrow_table, *ANY], 1),
    "hf-json": Target(_hf, _load, ["*.json"], TREE, 1),
    "safetensors": Target(_tensors, partial(_load, name="a.safetensors"), ["a.safetensors"], TENSORS),
}
