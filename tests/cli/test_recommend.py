"""`attar recommend`, and `attar reduce` without a method."""

import shlex
from dataclasses import replace
from pathlib import Path

import numpy as np

import attar as library
from attar import Coreset
from tests.cli.conftest import Attar


def table(path: Path) -> Path:
    """Two kinds of points in the plane, as a CSV file."""
    x = np.random.default_rng(0).normal(size=(80, 2)) + np.repeat([[0], [3]], 40, axis=0)
    rows = [f"{a:.3f},{b:.3f},{'left' if row < 40 else 'right'}" for row, (a, b) in enumerate(x)]
    path.write_text("\n".join(["a,b,side", *rows]))
    return path


def test_the_printed_command_and_reduce_without_a_method_make_the_recommended_coreset(
    attar: Attar, tmp_path: Path
) -> None:
    data, named, made = (
        table(tmp_path / "points in the plane.csv"),
        tmp_path / "a.safetensors",
        tmp_path / "b.safetensors",
    )
    done = attar("recommend", data, "--target", "side", "-n", "2")
    assert done.code == 0
    printed = next(line for line in done.out.splitlines() if line.startswith("Run: "))
    words = shlex.split(printed.removeprefix("Run: "))
    assert words[:5] == ["attar", "reduce", str(data), "--target", "side"]
    found = library.recommend(library.load(data, target="side"), per_class=2)
    assert done.out.count(found.why) == 1
    assert attar(*words[1:], "-o", named).code == 0
    a = Coreset.load(named)
    assert a.recipe.method == found.method
    done = attar("reduce", data, "--target", "side", "-n", "2", "-o", made)
    assert done.code == 0
    assert f"No method is named; `attar recommend` says {shlex.join(found.flags)}: {found.expectation}." in done.out
    b = Coreset.load(made)
    assert a.recipe == replace(b.recipe, cost=a.recipe.cost)
    assert a.data.fingerprint == b.data.fingerprint


def test_a_fraction_is_turned_into_a_size(attar: Attar, tmp_path: Path) -> None:
    data, made = table(tmp_path / "points.csv"), tmp_path / "a.safetensors"
    done = attar("reduce", data, "--target", "side", "--fraction", "0.1", "-o", made)
    assert done.code == 0
    assert "--per-class 3" in done.out
    assert len(Coreset.load(made)) == 6


def test_settings_of_a_method_need_its_name(attar: Attar, tmp_path: Path) -> None:
    recipe = tmp_path / "r.toml"
    recipe.write_text('data = "digits"\n[descent]\nsteps = 3\n')
    done = attar("reduce", "--recipe", recipe)
    assert done.code == 2
    assert "name it with --method" in done.err


def test_bad_input_is_one_sentence(attar: Attar) -> None:
    for words, said in {
        ("--goal", "fast"): "Unknown goal 'fast': choose from accuracy, calibration, privacy, speed.",
        ("--minutes", "-1"): "minutes must be a number above 0",
        ("-n", "1000"): "Class '0' has 128 examples, but 1000 per class were asked for",
    }.items():
        done = attar("recommend", "digits", *words)
        assert done.code == 2
        assert said in done.err
