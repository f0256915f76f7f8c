"""Classes share the examples of a coreset equally, in proportion or with a minimum, whatever the method."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

import attar
from attar.core import registry
from attar.core.errors import AttarError
from attar.data import Data, Split
from attar.nets.train import Training

IMAGES = ("gtn",)  #: methods that learn nothing but images
QUICK = Training(steps=2, batch=8)


def skewed() -> Data:
    """60, 20 and 10 rows of three classes."""
    gen = torch.Generator().manual_seed(0)
    y = torch.tensor([0] * 60 + [1] * 20 + [2] * 10)
    return Data(torch.randn(90, 4, generator=gen) + y[:, None], y)


def counts(data: Data) -> list[int]:
    return data.hard.bincount(minlength=data.classes).tolist()


def learning() -> list[str]:
    """The methods that learn from the data alone, on rows of numbers."""
    found = registry.methods("condense", "bayes")
    return [name for name in found if not registry.find(name).build.needs.experts and name not in IMAGES]


@pytest.mark.parametrize("method", ["uniform", "herding", "k-center", *learning()])
def test_every_method_keeps_the_shares_of_a_budget(method: str) -> None:
    data = skewed()
    options = registry.find(method).build
    split = Split(data, data, data)
    steps = None if options.descent is None else {"steps": 1}
    how = {"network": "mlp-d1w8", "training": QUICK, "descent": steps, "per_class": 4, "seed": 0}
    made = attar.reduce(split, method, budget="proportional", **how)
    assert len(made) == 12
    if made.data.y.ndim == 1:
        assert counts(made.data) == [8, 3, 1]
    assert made.recipe.budget == "proportional"


def test_budgets_by_name_and_in_the_file(tmp_path: Path) -> None:
    data = skewed()
    for budget, sizes in {"proportional": [8, 3, 1], "minimum=3": [6, 3, 3]}.items():
        made = attar.reduce(data, "uniform", per_class=4, budget=budget)
        assert counts(made.data) == sizes
        made.save(tmp_path / "c.safetensors")
        assert attar.Coreset.load(tmp_path / "c.safetensors").recipe.budget == budget
    assert "4 per class on average, minimum=3" in repr(made)
    for init in ("real", "noise", "mean", "herding"):
        learnt = attar.reduce(
            data, "dm", per_class=4, budget="minimum", training=QUICK, descent={"steps": 1, "init": init}
        )
        assert counts(learnt.data) == [8, 2, 2]
    with pytest.raises(AttarError, match="Unknown budget"):
        attar.reduce(data, "uniform", per_class=4, budget="equal")
    with pytest.raises(AttarError, match="Class '2' has 10 examples, but 11 per class were asked for"):
        attar.reduce(data, "uniform", per_class=11)
    assert counts(attar.reduce(data, "uniform", per_class=11, budget="proportional").data) == [22, 7, 4]


def test_select_divides_any_size_by_the_same_names() -> None:
    data = skewed()
    picked = attar.select(data, "uniform", per_class=4, budget="proportional")
    assert counts(data[picked.indices]) == [8, 3, 1]
    assert counts(data[attar.select(data, "uniform", size=12, budget="minimum=2").indices]) == [8, 2, 2]
    with pytest.raises(AttarError, match="balanced and budget say the same"):
        attar.select(data, "uniform", size=12, balanced=True, budget="minimum")


def test_equally_many_of_skewed_classes_are_warned_of_once(tmp_path: Path, recwarn: pytest.WarningsRecorder) -> None:
    data = skewed()
    study = {"methods": ["uniform", "herding"], "per_class": [1, 2], "seeds": 0, "draws": 1, "converged": False}
    study |= {"network": "mlp-d1w8", "training": {"steps": 2}}
    quick = {"network": "mlp-d1w8", "training": QUICK, "per_class": 4}
    for call in (
        lambda: attar.reduce(data, "uniform", **quick),
        lambda: attar.reduce(data, "dm", descent={"steps": 1}, **quick),
        lambda: attar.select(data, "uniform", per_class=4),
        lambda: attar.select(data.x, "herding", labels=data.y, size=6, balanced=True),
        lambda: attar.select(data, "uniform", size=6, budget="balanced"),
        lambda: attar.compare(study, data=Split(data, data, data), folder=tmp_path),
    ):
        call()
        (said,) = (given for given in recwarn if given.category is attar.SkewWarning)
        assert "Classes have 10 to 60 examples, and equally many of each are kept" in str(said.message)
        recwarn.clear()
    assert issubclass(attar.SkewWarning, UserWarning)


def test_a_study_shares_its_examples_by_the_budget(tmp_path: Path) -> None:
    data = skewed()
    split = Split(data, data, replace(data, y=data.y))
    spec = {
        "methods": ["uniform"],
        "per_class": 4,
        "seeds": 0,
        "budget": "proportional",
        "baselines": False,
        "network": "mlp-d1w8",
        "training": {"steps": 2},
        "draws": 1,
    }
    study = attar.compare(spec, data=split, folder=tmp_path)
    coreset = attar.Coreset.load(tmp_path / str(study.runs[0].coreset))
    assert counts(coreset.data) == [8, 3, 1]
    page = attar.report(study, tmp_path / "page.html").read_text()
    assert "4 per class on average" in page
