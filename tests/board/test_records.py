import json
from pathlib import Path

import pytest
from pydantic import TypeAdapter
from pydantic.dataclasses import dataclass

from attar.board.records import Kind, digest, read_record, write_record
from attar.core.errors import DamagedFile, MissingFile

KIND = Kind("thing", "thing-1", "make it again.")


@dataclass(frozen=True)
class Thing:
    value: float
    format: str = "thing-1"


ADAPTER: TypeAdapter[Thing] = TypeAdapter(Thing)


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    write_record(tmp_path / "a.json", ADAPTER, Thing(0.1 + 0.2))
    assert read_record(tmp_path / "a.json", ADAPTER, KIND) == Thing(0.1 + 0.2)


def test_a_file_edited_by_hand_is_told(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    write_record(path, ADAPTER, Thing(0.5))
    path.write_text(path.read_text().replace("0.5", "0.6"))
    before = path.read_text()
    with pytest.raises(DamagedFile, match=r"a\.json was changed after it was written: restore it, or make it again"):
        read_record(path, ADAPTER, KIND)
    assert path.read_text() == before


def test_other_spaces_and_another_order_are_no_change(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    write_record(path, ADAPTER, Thing(0.5))
    values = json.loads(path.read_text())
    path.write_text(json.dumps(dict(reversed(values.items()))))
    assert read_record(path, ADAPTER, KIND) == Thing(0.5)


@pytest.mark.parametrize("content", ['{"format": "thing-0", "value": 1.0}', "[]", '{"value": 1.0}'])
def test_another_version_or_kind_is_told(tmp_path: Path, content: str) -> None:
    (tmp_path / "a.json").write_text(content)
    with pytest.raises(DamagedFile, match="is no thing of this version of Attar"):
        read_record(tmp_path / "a.json", ADAPTER, KIND)


def test_values_of_another_type_are_told_even_with_a_right_checksum(tmp_path: Path) -> None:
    values = {"format": "thing-1", "value": "much"}
    (tmp_path / "a.json").write_text(json.dumps({**values, "checksum": digest(values)}))
    with pytest.raises(DamagedFile, match=r"is no thing \(value"):
        read_record(tmp_path / "a.json", ADAPTER, KIND)


def test_a_missing_file_is_missing(tmp_path: Path) -> None:
    with pytest.raises(MissingFile):
        read_record(tmp_path / "a.json", ADAPTER, KIND)
