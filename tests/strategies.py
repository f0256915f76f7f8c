"""Inputs for tests of what is true of any input."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from attar.data import Classes

#: Text that people could have typed: no control characters and no halves of characters.
TEXT = st.text(st.characters(exclude_categories=("C",)), max_size=12)
NAMES = st.lists(TEXT, min_size=2, max_size=5, unique=True).map(tuple)
CLASSES = NAMES.map(Classes)
SHAPES = st.one_of(
    st.tuples(st.integers(1, 5)), st.tuples(st.integers(1, 3), st.sampled_from([2, 4, 5]), st.sampled_from([2, 4, 5]))
)


def floats(largest: float = 1e6) -> st.SearchStrategy[float]:
    """Finite numbers that float32 holds, none so small that arithmetic rounds it to zero."""
    return st.floats(-largest, largest, width=32, allow_subnormal=False)


def rows(n: int, shape: tuple[int, ...], dtype: str) -> st.SearchStrategy[NDArray[Any]]:
    """``n`` examples of one shape: any numbers of the type."""
    numbers = floats(1e4) if np.dtype(dtype).kind == "f" else None
    if dtype == "float16":
        numbers = st.floats(-1e4, 1e4, width=16)
    return hnp.arrays(dtype, (n, *shape), elements=numbers)


@st.composite
def labels(draw: st.DrawFn, least: int = 1, classes: int = 3) -> NDArray[np.int64]:
    """Class indices from 0 without a gap, at least ``least`` of every class, in any order."""
    kinds = draw(st.integers(2, classes))
    more = draw(st.lists(st.integers(0, kinds - 1), max_size=10))
    return np.array(draw(st.permutations([*range(kinds)] * least + more)), dtype=np.int64)


def damaged(whole: bytes) -> st.SearchStrategy[bytes]:
    """The bytes of a file after an accident: some changed, some lost, the end cut off, or something else altogether."""
    places = st.integers(0, len(whole) - 1)

    def changed(at: list[tuple[int, int]]) -> bytes:
        broken = bytearray(whole)
        for place, byte in at:
            broken[place] = byte
        return bytes(broken)

    return st.one_of(
        st.lists(st.tuples(places, st.integers(0, 255)), min_size=1, max_size=4).map(changed),
        places.map(lambda place: whole[:place]),
        st.tuples(places, places).map(lambda ends: whole[: min(ends)] + whole[max(ends) :]),
        st.tuples(places, st.binary(max_size=8)).map(lambda part: whole[: part[0]] + part[1] + whole[part[0] :]),
        st.binary(max_size=64),
    )
