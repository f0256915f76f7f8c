"""The committed recipes name methods and options that exist, and the paper's stands beside each small one."""

import pytest

from attar.cli.options import read_study
from attar.condense.contract import Descent
from attar.core import registry
from attar.nets import network
from attar.nets.train import Training
from attar.study.setting import grid
from tests.known import ROOT

RECIPES = sorted((ROOT / "benchmarks" / "recipes").glob("*.toml"))


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_a_recipe_can_be_carried_out(path: object) -> None:
    recipe = read_study(path)  # type: ignore[arg-type]
    assert recipe.data is not None
    assert recipe.network is not None
    network(recipe.network, (3, 32, 32) if recipe.data == "cifar10" else (1, 28, 28), 10)
    registry.make(Training, recipe.training, "training")
    jobs = grid(recipe.methods or [], recipe.per_class or [], recipe.seeds or [], variants=recipe.variants)
    names = {job.method for job in jobs}
    assert recipe.options.keys() | recipe.descent.keys() | recipe.variants.keys() <= names
    for name, options in recipe.options.items():
        registry.build(recipe.variants.get(name, name), options)
    for name, descent in recipe.descent.items():
        registry.make(Descent, descent, name)


def test_every_small_recipe_has_one_of_the_papers_size() -> None:
    stems = {path.stem for path in RECIPES}
    small = {stem.removesuffix("-small") for stem in stems if stem.endswith("-small")}
    assert small
    assert {f"{table}-paper" for table in small} <= stems
