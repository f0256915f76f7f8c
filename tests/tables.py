"""Tables on disk for tests: vectors with labels and keys, in several formats."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

RNG = np.random.default_rng(0)
X = RNG.standard_normal((900, 4)).astype(np.float32)
Y = (X[:, 0] > 0).astype(int) + 2 * (X[:, 1] > 0)
KEYS = [f"key {number}" for number in range(900)]


def table(start: int = 0, stop: int = 900, **columns: Any) -> pa.Table:
    """Some rows of the vectors; ``columns`` replace or add some."""
    some = slice(start, stop)
    made = {"emb": pa.array(list(X[some])), "y": [f"class {y}" for y in Y[some]], "key": KEYS[some]}
    return pa.table({**made, **columns})


def parquet(folder: Path, files: int = 3, group: int = 100) -> str:
    """Parquet files of 300 rows each; returns their pattern."""
    folder.mkdir(exist_ok=True)
    for number in range(files):
        pq.write_table(table(300 * number, 300 * number + 300), folder / f"{number}.parquet", row_group_size=group)
    return str(folder / "*.parquet")


def corrupt(path: Path, group: int, column: str) -> None:
    """Overwrite the pages of a column in one row group; the file's description stays whole."""
    about = pq.ParquetFile(path).metadata.row_group(group)
    place = next(k for k in range(about.num_columns) if about.column(k).path_in_schema.startswith(column))
    chunk = about.column(place)
    content = bytearray(path.read_bytes())
    start = chunk.dictionary_page_offset or chunk.data_page_offset
    content[start : start + chunk.total_compressed_size] = b"\xff" * chunk.total_compressed_size
    path.write_bytes(content)
