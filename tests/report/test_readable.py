from __future__ import annotations

from pathlib import Path

import torch

import attar
from attar.data import Data
from attar.data.spec import Spec
from attar.report import render
from attar.report.gallery import galleries
from attar.report.readable import in_words, named, values
from attar.report.rows import rows
from tests.known import gaussians, images
from tests.report.reading import section, text
from tests.report.studies import CLASSES, study


def test_rows_of_a_table_tell_their_values_and_images_nothing() -> None:
    x = torch.tensor([[1.0, 2.5], [3.0, -4.125]])
    data = Data(x, torch.tensor([0, 1]), spec=Spec.of((2,), 2))
    assert values(data) == {"x0": ["1", "3"], "x1": ["2.5", "-4.125"]}
    assert in_words(data) == ["x0 1, x1 2.5", "x0 3, x1 -4.125"]
    assert in_words(images(2)) is None


def test_examples_have_the_users_names() -> None:
    data = gaussians(4)
    assert named(data, 3, "test example") == "test example 3"
    rows_known = Data(data.x, data.y, rows=torch.arange(len(data)) + 100)
    assert named(rows_known, 3, "") == "row 103"
    keys = {100 + i: f"file{i}.png" for i in range(len(data))}
    assert named(Data(data.x, data.y, rows=rows_known.rows, keys=keys), 3, "") == "file3.png"


def test_picked_rows_of_a_table_stand_on_the_page_with_their_numbers(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    jobs = ("clerk", "", "baker")
    table.write_text("a,job,label\n" + "".join(f"{k % 5},{jobs[k % 3]},{'xy'[k % 2]}\n" for k in range(60)))
    spec = {"methods": [], "per_class": 2, "seeds": 0, "network": "linear", "draws": 1, "training": {"steps": 2}}
    made = attar.compare(spec | {"converged": False}, data=attar.load(table), folder=tmp_path / "study")
    shown = next(one for one in galleries(rows(made), tmp_path / "study") if one.row.method == "herding")
    assert shown.table is not None
    assert shown.table.head == ["Class", "Row", "a", "job"]
    for label, row, a, job in shown.table.lines:
        assert (label, int(a)) == ("xy"[int(row) % 2], int(row) % 5)
        assert job == (jobs[int(row) % 3] or "–")
    page = text(section(render(made, tmp_path / "study"), "examples"))
    assert "Values Class Row a job x " in page


def test_picked_texts_stand_on_the_page_with_their_numbers(tmp_path: Path) -> None:
    texts = [f"{'good' if k % 2 else 'bad'} film number {k}" for k in range(60)]
    at = attar.load((texts, [k % 2 for k in range(60)]), vectors="learnt")
    spec = {"methods": [], "per_class": 1, "seeds": 0, "network": "embedding-bag", "draws": 1, "training": {"steps": 2}}
    made = attar.compare(spec | {"converged": False}, data=at, folder=tmp_path / "study")
    shown = next(one for one in galleries(rows(made), tmp_path / "study") if one.row.method == "herding")
    told = [text for _, some in shown.texts for text in some]
    assert len(told) == 2
    for words, name in told:
        assert words.split()[0] == ("good" if int(name.removeprefix("row ")) % 2 else "bad")


def test_learnt_rows_have_no_number(tmp_path: Path) -> None:
    x = torch.randn(60, 3, generator=torch.Generator().manual_seed(0))
    made = study(tmp_path, pool=x, labels=torch.arange(60) % 3)
    shown = galleries(rows(made), tmp_path)[0]
    assert shown.table is not None
    assert shown.table.head == ["Class", "x0", "x1", "x2"]
    assert {line[0] for line in shown.table.lines} == set(CLASSES)
