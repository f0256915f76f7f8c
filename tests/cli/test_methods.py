"""`attar methods`: all at a glance, and one in full."""

import pytest

from attar.core import registry
from tests.cli.conftest import Attar

ALL = registry.methods()


def test_methods_fit_a_screen_of_80_columns(attar: Attar, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = attar("methods").out.splitlines()
    assert lines[0].startswith("Start here: herding, dm, vbpc")
    assert len(lines) == len(ALL) + 6  # one line each, and the headings
    assert max(map(len, lines)) <= 80
    listed = [line.split()[0] for line in lines if line[:1].islower() and ":" not in line.split()[0]]
    by_family = [name for family in registry.ROOMS for name in sorted(registry.methods(family))]
    assert listed == by_family


@pytest.mark.parametrize("name", ALL)
def test_every_method_says_what_it_does_when_to_choose_it_and_how_long_it_takes(name: str) -> None:
    entry = ALL[name]
    assert 5 < len(entry.about) <= 40
    assert 5 < len(entry.choose) <= 70
    assert entry.takes.split()[1] in ("s", "min", "h")


def test_methods_that_need_experts_are_marked(attar: Attar) -> None:
    lines = attar("methods").out.splitlines()
    marked = {line.split()[0] for line in lines if line.endswith("*")}
    assert marked == {"mtt", "bpc-cd", "bpc-fkl", "bpc-w"}


def test_one_method_is_explained(attar: Attar, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    one = attar("methods", "dc").out
    assert "--net-lr" in one
    assert "int ≥ 1" in one
    assert "Zhao, Mopuri & Bilen" in one
    assert "cost: gradients of a real batch per class" in one
    assert ".. math::" not in one
    assert max(map(len, one.splitlines())) <= 80
    assert "no options" in attar("methods", "uniform").out
    assert attar("methods", "hurding").code == 2


def test_a_family_is_listed_alone(attar: Attar) -> None:
    text = attar("methods", "infer").out
    assert all(f"\n{name} " in text for name in registry.methods("infer"))
    assert not any(f"\n{name} " in text for name in registry.methods("select"))
