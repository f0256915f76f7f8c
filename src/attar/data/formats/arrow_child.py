"""The program that checks Arrow and Parquet files in a process of its own; ``arrow.py`` starts it.

Bad bytes can crash the library that reads them, or unpack to more than fits. Here that ends only this process. It
imports nothing of Attar, so that it starts in the time that the library itself takes.

Usage: ``arrow_child.py BYTES FILE...``; prints the bytes that the tables take, or one line that says what is wrong.
"""

from __future__ import annotations

import errno
import os
import resource
import sys
from collections.abc import Iterator

os.environ["ARROW_DEFAULT_MEMORY_POOL"] = "system"  # others reserve memory in advance

import pyarrow as pa
import pyarrow.parquet

OWN = 1 << 28  #: bytes of the libraries themselves
ROW = 72  #: bytes of an object for every value that is not a number
ROWS = 4096  #: of a Parquet file, read at once
TOO_MUCH, WRONG, UNREAD = 3, 4, 5  #: exit codes, as ``arrow.py`` reads them


def main(most: int, paths: list[str]) -> int:
    """Read every file to its end, batch by batch, and count what its table takes."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_DATA, (most + OWN, most + OWN))
    taken = 0
    try:
        for path in paths:
            for batch in _batches(path, most):
                if ROW * batch.num_rows > most - taken:
                    return TOO_MUCH
                batch.validate(full=True)
                taken += sum(_size(column) for column in batch.columns)
                if taken > most:
                    return TOO_MUCH
    except (MemoryError, pa.ArrowMemoryError):
        return TOO_MUCH
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:
        print(" ".join(str(error).split())[:300])
        system = isinstance(error, OSError) and error.errno not in (None, errno.EINVAL)
        return UNREAD if system else WRONG
    print(taken)
    return 0


def _batches(path: str, most: int) -> Iterator[pa.RecordBatch]:
    if path.endswith(".parquet"):
        file = pa.parquet.ParquetFile(path, memory_map=True, pre_buffer=False)
        if ROW * file.metadata.num_rows > most:
            raise MemoryError
        yield from file.iter_batches(ROWS, use_threads=False)
    else:
        with pa.memory_map(path) as source, pa.ipc.open_stream(source) as reader:
            yield from reader


def _size(column: pa.Array) -> int:
    """Bytes of a column as numpy holds it: with dictionaries written out, and an object for each text."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    objects = 0 if pa.types.is_primitive(column.type) else ROW * len(column)
    return int(column.nbytes) + objects


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:]))
