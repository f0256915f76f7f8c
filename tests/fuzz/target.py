"""What a target of fuzzing is: valid files of one format, how to mutate them and how they are read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.fuzz import mutate
from tests.fuzz.mutate import Mutator

ANY: tuple[Mutator, ...] = (mutate.some_bytes, mutate.some_bytes, mutate.another_file)
TEXT: tuple[Mutator, ...] = (mutate.some_text, mutate.some_text, mutate.some_text, *ANY)
TREE: tuple[Mutator, ...] = (*([mutate.json_tree] * 6), *ANY)
TENSORS: tuple[Mutator, ...] = (*([mutate.tensors] * 6), *ANY, mutate.one_bit)


@dataclass(frozen=True)
class Target:
    """A format: ``make`` writes valid files to a folder, ``read`` reads them as a user would.

    Attributes:
        make: Writes the valid files.
        read: Reads them from a folder that may be damaged; must return or raise ``AttarError``.
        files: Patterns of the files that are mutated, one at a time.
        mutators: How.
        often: How many cases it gets in a round of all targets; the readers of tables start a process each.
        sealed: Whether a single flipped bit must be refused, because the file has checksums.
    """

    make: Callable[[Path], object]
    read: Callable[[Path], object]
    files: Sequence[str]
    mutators: Sequence[Mutator]
    often: int = 4
    sealed: bool = False
