"""The page shows how learnt examples came about, and is there without it."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import pytest
import torch
from PIL import Image

import attar
from attar.condense.film import Film
from attar.core.files import write_tensors
from attar.experts import Schedule, experts
from attar.nets.train import Training
from attar.report import render
from attar.report.images import GAP
from attar.study import Study, StudySpec, compare
from tests.report.reading import EVIL, scripts, section, text
from tests.report.studies import CLASSES, making, study

X = torch.rand(3, 1, 6, 6, generator=torch.Generator().manual_seed(0))
FILM, LOG = Path("films", "dm-2-0.safetensors"), Path("logs", "dm-2-0.jsonl")


@pytest.fixture
def small(tmp_path: Path) -> Study:
    made = study(tmp_path, seeds=2)
    making(tmp_path, "dm-2-0", X)
    return made


def shown(made: Study, folder: Path) -> str:
    return section(render(made, folder), "making")


def pictures(page: str) -> list[Image.Image]:
    return [Image.open(BytesIO(base64.b64decode(body))) for body in re.findall(r"base64,([^\"]+)", page)]


def test_the_film_goes_from_before_the_first_step_to_the_end(small: Study, tmp_path: Path) -> None:
    page = shown(small, tmp_path)
    assert re.findall(r"<span>([^<]*)</span>", page) == ["start", "100", "200"]
    assert re.findall(r'alt="(dm: class [^"]*)"', page) == [
        f"dm: class {name} at the steps 0, 100, 200" for name in CLASSES
    ]
    for image, x in zip(pictures(page), X, strict=True):
        side = (image.width + GAP) // 3
        for place, share in enumerate((0.2, 0.6, 1.0)):
            bright = image.getpixel((place * side + 3, 3))
            assert isinstance(bright, tuple)
            assert bright[0] == pytest.approx(255 * share * float(x[0, 0, 0]), abs=1)


def test_energies_are_two_lines_with_a_legend(small: Study, tmp_path: Path) -> None:
    page = shown(small, tmp_path)
    (chart,) = [svg for svg in re.findall(r"<svg.*?</svg>", page, re.DOTALL) if "Energies" in svg]
    legend = re.findall(r'class="series ([^"]*)"[^>]*>(\w+)<', chart)
    assert legend == [("c-full", "positive"), ("c2", "negative")]  # the second colour is that of dm
    assert chart.count("<polyline") == 4  # each as it is, and its running mean
    assert "means over 11 steps" in text(page)


def test_experts_are_counted_by_trajectory_and_epoch(small: Study, tmp_path: Path) -> None:
    page = shown(small, tmp_path)
    told = re.findall(r"<title>trajectory (\d), epoch (\d): (\d+)</title>", page)
    steps = range(1, 201)  # in whole epochs and, of the first expert, halves
    expected = {(t, e): sum(s % 3 == t and s % 4 == e for s in steps) for t in range(3) for e in range(4)}
    assert {(int(t), int(e)): int(count) for t, e, count in told} == expected


def test_learnt_numbers_have_a_line_and_other_metrics_have_none(small: Study, tmp_path: Path) -> None:
    page = shown(small, tmp_path)
    assert "Learnt scale of logits from 10 to 11" in text(page)
    assert "step size" not in page
    assert "gap" not in text(page)
    assert page.count("<svg") == 3


def test_features_are_a_line_of_heat_a_step(tmp_path: Path) -> None:
    features = torch.randn(60, 13, generator=torch.Generator().manual_seed(0))
    made = study(tmp_path, pool=features, labels=torch.arange(60) % 3)
    making(tmp_path, "dm-2-0", features[:3])
    page = shown(made, tmp_path)
    assert [image.height for image in pictures(page)] == [30, 30, 30]
    assert "Lines: start, 100, 200." in page
    assert 'class="frames"' not in page


def test_without_files_one_sentence_says_so(tmp_path: Path) -> None:
    made = study(tmp_path, ("uniform", "dm", "bpc-cd", "full"))
    page = shown(made, tmp_path)
    assert "<svg" not in page
    assert "<img" not in page
    assert page.count('class="note"') == 1
    assert "Neither film nor log is in the study’s folder" in text(page)
    for name in ("dm (2 per class", "bpc-cd (2 per class"):
        assert name in text(page)


def test_what_is_selected_has_no_making(tmp_path: Path) -> None:
    page = render(study(tmp_path, ("uniform", "herding", "full")), tmp_path)
    assert 'id="making"' not in page
    assert 'href="#making"' not in page


def test_a_film_or_a_log_alone_is_shown_and_the_other_missed(small: Study, tmp_path: Path) -> None:
    (tmp_path / LOG).rename(tmp_path / "kept")
    page = shown(small, tmp_path)
    assert page.count("<img") == 3
    assert "The file logs/dm-2-0.jsonl is not in the study’s folder" in page
    (tmp_path / "kept").rename(tmp_path / LOG)
    (tmp_path / FILM).unlink()
    page = shown(small, tmp_path)
    assert page.count("<svg") == 3
    assert "The file films/dm-2-0.safetensors is not in the study’s folder" in page


def other_classes(path: Path) -> None:
    Film(torch.tensor([0, 7]), {0: X[:2], 5: X[:2]}, 5).save(path)


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.write_bytes(path.read_bytes()[:-9]),
        lambda path: path.write_bytes(b""),
        lambda path: path.write_text(EVIL),
        lambda path: write_tensors(path, {"x": X}, {"format": EVIL}),
        other_classes,
    ],
)
def test_a_damaged_film_is_a_sentence(small: Study, tmp_path: Path, damage: Callable[[Path], None]) -> None:
    damage(tmp_path / FILM)
    page = shown(small, tmp_path)
    assert "The file films/dm-2-0.safetensors is not a complete film of this study, so it is not shown." in page
    assert "<img" not in page
    assert page.count("<svg") == 3
    assert "<script" not in page


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"\xff\xfe",
        EVIL.encode(),
        b'{"step": 1, "loss": 1.0}\n{"step": 2, "lo',
        b'{"step": 1, "loss": 1.0}\n{"step": 1, "loss": 1.0}\n',
        b'{"loss": 1.0}\n',
        b'{"step": 0}\n',
        b'{"step": NaN}\n',
        b'{"step": 1, "scale": "<script>alert(1)</script>"}\n',
        b'{"step": true}\n',
        b"[1]\n",
        b"[" * 100_000,
    ],
)
def test_a_damaged_log_is_a_sentence(small: Study, tmp_path: Path, damage: bytes) -> None:
    (tmp_path / LOG).write_bytes(damage)
    page = shown(small, tmp_path)
    assert "The file logs/dm-2-0.jsonl is not a complete log, so it is not shown." in page
    assert "<svg" not in page
    assert page.count("<img") == 3
    assert "<script" not in page


@pytest.mark.parametrize("value", ["NaN", "Infinity", "1e308", "-1e308", "5e-324", "1" + "0" * 400, "-3", "0.5"])
def test_no_number_breaks_the_page(small: Study, tmp_path: Path, value: str) -> None:
    keys = ("positive", "negative", "trajectory", "epoch", "scale", "step_size")
    odd = f'{{"step": 2, {", ".join(f"{json.dumps(key)}: {value}" for key in keys)}}}'
    plain = json.dumps({"step": 1} | dict.fromkeys(keys, 2.0))
    (tmp_path / LOG).write_text(f"{plain}\n{odd}\n")
    page = shown(small, tmp_path)
    assert page.count("<svg") == 4
    assert "nan" not in page.lower()
    assert 'inf"' not in page.lower()
    assert page.count("<title>trajectory") == 1


def test_names_are_escaped_and_lead_to_no_file_outside(tmp_path: Path) -> None:
    folder = tmp_path / "study"
    folder.mkdir()
    made = study(folder, classes=(EVIL, "b", "c"))
    making(folder, "dm-2-0", X)
    page = render(made, folder)
    assert page.count("<script") == len(scripts(page)) == 1  # its own
    assert EVIL in text(section(page, "making"))
    making(folder, "other-2-0", X)
    for name in ("../logs/other", EVIL):
        runs = [replace(run, method=name) if run.method == "dm" else run for run in made.runs]
        page = render(replace(made, runs=runs), folder)
        assert "Neither film nor log" in section(page, "making")
        assert page.count("<script") == len(scripts(page)) == 1  # its own


def test_parts_are_not_taken_for_the_whole(small: Study, tmp_path: Path) -> None:
    Film(torch.tensor([0, 2]), {0: X[:2], 5: X[:2]}, 9).save(tmp_path / FILM)
    page = shown(small, tmp_path)
    assert "2 of 3 classes are shown." in page
    assert "The film ends at step 5 of 9." in page


def test_a_study_by_the_protocol_has_all_of_it(tmp_path: Path) -> None:
    split, network, folder = attar.load("digits"), "mlp-d1w8", tmp_path / "study"
    experts(split, network, Schedule(2, 3, Training(batch=256, lr=0.05)), folder=tmp_path / "experts")
    descent = {name: {"steps": 10} for name in ("dm", "vbpc", "bpc-cd")}
    options = {"dm": {"batch": 8}, "vbpc": {"batch": 16, "pool": 2}, "bpc-cd": {"k": 3}}
    spec = StudySpec(
        methods=list(descent),
        per_class=[1],
        seeds=[0],
        network=network,
        training=Training(steps=5),
        draws=1,
        options=options,
        descent=descent,
        experts=tmp_path / "experts",
        baselines=False,
    )
    made = compare(spec, data=split, folder=folder)
    page = shown(made, folder)
    assert "note" not in page
    assert re.findall(r"<span>([^<]*)</span>", page) == 3 * ["start", "2", "4", "6", "8", "10"]
    assert page.count("<img") == 30
    titles = re.findall(r'role="img"[^>]*><title>([^<]*)</title>', page)
    assert sorted(titles) == [
        "Energies of bpc-cd against step",
        "The scale of logits of vbpc against step",
        "Trajectories and epochs of the experts that bpc-cd used",
    ]
    for run in made.runs:  # the end of the film is the coreset
        coreset = attar.Coreset.load(folder / str(run.coreset))
        film = Film.load(folder / "films" / f"{run.method}-1-0.safetensors")
        assert torch.equal(film.frames[10], coreset.pixels()[: len(film.labels)])


def test_a_name_that_no_file_can_have_leads_to_none(small: Study, tmp_path: Path) -> None:
    runs = [replace(run, method="m" * 3000) if run.method == "dm" else run for run in small.runs]
    page = render(replace(small, runs=runs), tmp_path)
    assert "Neither film nor log" in section(page, "making")
