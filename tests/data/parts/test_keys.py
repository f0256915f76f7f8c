"""Keys that repeat are found, in any amount of memory."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from attar.core.errors import AttarError
from attar.data.parts import keys
from attar.data.parts.keys import hashed, require_unique


def batches(values: list[Any]) -> Iterator[tuple[Any, Any]]:
    kind = pa.int64() if isinstance(values[0], int) else pa.large_string()
    for start in range(0, len(values), 100):
        some = values[start : start + 100]
        yield np.arange(start, start + len(some)), pa.array(some, kind)


@pytest.mark.parametrize("memory", [10**6, 4000])
@pytest.mark.parametrize("name", [str, int])
def test_the_first_key_that_repeats_is_named_whatever_the_memory(memory: int, name: Any) -> None:
    values = [name(number) for number in range(1000)]
    require_unique(lambda: batches(values), 1000, memory, "column 'key'")
    values[730] = values[17]
    with pytest.raises(AttarError, match=rf"Key {values[17]!r} of column 'key' is in row 17 and in row 730"):
        require_unique(lambda: batches(values), 1000, memory, "column 'key'")


def test_different_keys_with_equal_hashes_do_not_repeat(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys, "hashed", lambda some: np.zeros(len(some), np.uint64))
    require_unique(lambda: batches(["a", "b", "c"]), 3, 10**6, "column 'key'")
    with pytest.raises(AttarError, match="Key 'a'"):
        require_unique(lambda: batches(["a", "b", "a"]), 3, 10**6, "column 'key'")


def test_hashes_of_texts_depend_on_place_and_length_and_not_on_the_batch() -> None:
    texts = pa.array(["", "a", "aa", "ab", "ba", "b" * 300, "b" * 299 + "c", "ä"], pa.large_string())
    found = hashed(texts)
    assert len(set(found.tolist())) == len(texts)
    assert hashed(texts.slice(3, 4)).tolist() == found[3:7].tolist()
