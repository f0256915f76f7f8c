"""Cells of a grid are files: what has one is not run again, and a damaged one is refused."""

from dataclasses import dataclass
from pathlib import Path

import pytest
from pydantic import TypeAdapter

from attar.core.errors import AttarError
from attar.study.cells import complete, read_cells, run_cells
from attar.study.grid import Progress

KIND = TypeAdapter(int)


@dataclass(frozen=True)
class Number:
    value: int

    @property
    def key(self) -> str:
        return f"n{self.value}"


def squared(more: int, job: Number) -> int:
    if job.value == 3:
        raise AttarError("no threes")
    return job.value**2 + more


def test_only_cells_without_a_file_are_run_and_all_are_told(tmp_path: Path) -> None:
    seen: list[Progress] = []
    first = [Number(1), Number(2)]
    run_cells(squared, 0, first, tmp_path, KIND, line=str)
    done = run_cells(squared, 100, [*first, Number(4)], tmp_path, KIND, line=str, watch=seen.append)
    assert done == {"n1": 1, "n2": 4, "n4": 116}
    assert [(part.done, part.total, part.line, part.kept) for part in seen] == [
        (1, 3, "n1: 1", True),
        (2, 3, "n2: 4", True),
        (3, 3, "n4: 116", False),
    ]


def test_what_was_done_before_a_failure_is_kept(tmp_path: Path) -> None:
    with pytest.raises(AttarError, match="no threes"):
        run_cells(squared, 0, [Number(2), Number(3)], tmp_path, KIND, line=str)
    assert read_cells(tmp_path, KIND) == {"n2": 4}
    assert complete([Number(2)], tmp_path)
    assert not complete([Number(2), Number(3)], tmp_path)


@pytest.mark.parametrize(("text", "problem"), [('"one"', "is corrupt or incompatible"), ("{", "is not JSON")])
def test_a_damaged_cell_is_refused_by_readers_and_kept_aside_and_run_again_by_writers(
    text: str, problem: str, tmp_path: Path
) -> None:
    (tmp_path / "n2.json").write_text(text)
    with pytest.raises(AttarError, match=rf"n2\.json {problem}.*: move it away, and it is run again"):
        read_cells(tmp_path, KIND)
    with pytest.warns(UserWarning, match=rf"{problem}.*it is kept as n2\.json\.unreadable-1, and it is run again"):
        assert run_cells(squared, 0, [Number(2)], tmp_path, KIND, line=str) == {"n2": 4}
    assert (tmp_path / "n2.json.unreadable-1").read_text() == text
