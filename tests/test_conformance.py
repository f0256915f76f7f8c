"""What must be true of every registered way to reduce and of every option; a new method joins by registering."""

from collections.abc import Iterable, Iterator
from dataclasses import fields as dataclass_fields
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple, get_args

import numpy as np
import pytest
import torch
from annotated_types import Ge, Gt, Le, Lt

import attar
from attar import Coreset, Data, Training
from attar.condense.contract import Condenser, Descent
from attar.condense.driver import Step
from attar.core import registry
from attar.core.errors import AttarError
from attar.select.balance import PerClass
from tests.conformance import (
    CONDENSERS,
    PER_CLASS,
    REDUCERS,
    SAMPLERS,
    SETS,
    SPLITS,
    STEPS,
    equal,
    of_all,
    of_condensers,
    of_kinds,
    of_nested,
    of_reducers,
    of_selectors,
    options,
    reduce,
    reduced,
    trained,
    view,
)
from tests.known import Stop, generator, stop_at


@of_reducers
@of_kinds
def test_the_coreset_has_the_data_s_shape_and_as_many_finite_examples_of_every_class_as_asked(
    name: str, kind: str
) -> None:
    coreset, data = reduced(name, kind), SETS[kind]
    assert coreset.data.x.shape == (PER_CLASS * data.classes, *data.shape)
    assert coreset.data.x.dtype == torch.float32
    assert coreset.data.y.dtype == (torch.float32 if name in CONDENSERS and "labels" in _learnt(name) else torch.int64)
    assert bool(torch.isfinite(coreset.data.x).all())
    assert torch.bincount(coreset.data.hard).tolist() == [PER_CLASS] * data.classes
    assert coreset.data.spec is data.spec


@of_selectors
@of_kinds
def test_selected_examples_are_different_ones_of_the_data(name: str, kind: str) -> None:
    coreset, data = reduced(name, kind), SETS[kind]
    assert coreset.indices is not None
    assert coreset.indices.dtype == torch.int64
    assert len(coreset.indices.unique()) == len(coreset)
    assert equal(coreset.data, replace(data[coreset.indices], weights=coreset.data.weights))


@of_condensers
@of_kinds
def test_what_is_learnt_moves_and_claims_no_place_in_the_data(name: str, kind: str) -> None:
    coreset, data = reduced(name, kind), SETS[kind]
    assert coreset.indices is None
    moved = [bool((data.x != x).flatten(1).any(1).all()) for x in coreset.data.x]
    assert moved == [bool(_learnt(name) - {"labels", "scalars"})] * len(coreset)
    if "labels" in _learnt(name):
        assert not torch.equal(coreset.data.y, torch.eye(data.classes)[coreset.data.hard])


def _learnt(name: str) -> set[str]:
    """Names of parameter groups, with the options that methods have by default."""
    method = registry.build(name, {})
    assert isinstance(method, Condenser)
    return set(method.source(SETS["features"], generator()).groups())


@of_reducers
@of_kinds
def test_the_recipe_alone_makes_the_same_bits_again_and_another_seed_makes_others(name: str, kind: str) -> None:
    coreset = reduced(name, kind, seed=1)
    recipe = coreset.recipe
    assert (recipe.data, recipe.fingerprint) == (SETS[kind].spec.name, SETS[kind].fingerprint)
    assert recipe.version
    assert recipe.cost.wall > 0
    assert recipe.cost.memory > 0
    assert equal(coreset.data, remade(name, kind).coreset.data)
    assert not torch.equal(coreset.data.x, reduced(name, kind).data.x)


@of_reducers
@of_kinds
def test_the_global_random_state_is_neither_read_nor_changed_by_reduction(name: str, kind: str) -> None:
    again = remade(name, kind)  # under another state
    assert equal(reduced(name, kind, seed=1).data, again.coreset.data)
    assert again.random_states_kept


@of_reducers
@of_kinds
def test_reduction_leaves_the_data_as_it_was(name: str, kind: str) -> None:
    assert remade(name, kind).data_kept
    assert not SETS[kind].x.requires_grad


class Remade(NamedTuple):
    """A coreset made from a recipe, and what it left as it was."""

    coreset: Coreset
    random_states_kept: bool
    data_kept: bool


@cache
def remade(name: str, kind: str) -> Remade:
    data, recipe = SETS[kind], reduced(name, kind, seed=1).recipe
    torch.seed()
    np.random.seed()
    states, before, version = _random_states(), Data(data.x.clone(), data.y.clone(), spec=data.spec), data.x._version
    again = attar.reduce(
        SPLITS[kind],
        recipe.method,
        per_class=recipe.per_class,
        seed=recipe.seed,
        network=recipe.network,
        options=recipe.options,
        descent=recipe.descent,
        training=recipe.training,
        experts=trained(kind) if recipe.experts else None,
    )
    data_kept = equal(data, before) and data.x._version == version  # not even changed and put back
    return Remade(again, states == _random_states(), data_kept)


def _random_states() -> tuple[list[int], list[int]]:
    return torch.get_rng_state().tolist(), np.random.get_state(legacy=False)["state"]["key"].tolist()


@of_condensers
@of_kinds
@pytest.mark.parametrize("crash", [2, STEPS])
def test_a_run_resumed_after_a_crash_ends_in_the_same_bits(name: str, kind: str, crash: int, tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.safetensors"
    with pytest.raises(Stop):
        reduce(name, kind, checkpoint=path, every=1, observers=[partial(stop_at, crash)])
    seen: list[int] = []
    resumed = reduce(name, kind, checkpoint=path, observers=[lambda steps: _numbers(steps, seen)])
    assert seen == list(range(crash, STEPS + 1))
    assert equal(resumed.data, reduced(name, kind).data)


def _numbers(steps: Iterable[Step], seen: list[int]) -> Iterator[Step]:
    for step in steps:
        seen.append(step.number)
        yield step


@of_selectors
@of_kinds
def test_selection_does_not_depend_on_the_chunk(name: str, kind: str) -> None:
    method = registry.build(name, options(name, kind))
    whole, chunked = (PerClass(method).select(view(kind, chunk), 3, generator(1)) for chunk in (1024, 7))
    assert torch.equal(whole.indices, chunked.indices)
    assert torch.allclose(whole.scores, chunked.scores, atol=1e-5)


@of_nested
@of_kinds
def test_a_smaller_selection_is_the_start_of_a_larger_one(name: str, kind: str) -> None:
    method = registry.build(name, options(name, kind))
    small, large = (method.select(view(kind), size, generator(1)) for size in (3, 6))
    assert len(large.indices) == len(large.scores) == 6
    assert torch.equal(small.indices, large.indices[:3])


@of_selectors
def test_a_selection_of_everything_takes_every_example_once(name: str) -> None:
    selection = registry.build(name, options(name, "features")).select(view("features"), 48, generator(1))
    assert sorted(selection.indices.tolist()) == list(range(48))


@of_reducers
@of_kinds
def test_a_saved_coreset_is_loaded_in_the_same_bits(name: str, kind: str, tmp_path: Path) -> None:
    coreset = reduced(name, kind)
    coreset.save(tmp_path / "coreset.safetensors")
    loaded = Coreset.load(tmp_path / "coreset.safetensors")
    assert equal(coreset.data, loaded.data)
    assert loaded.recipe == coreset.recipe
    assert loaded.data.spec.target.names == coreset.data.spec.target.names
    assert torch.equal(loaded.pixels(), coreset.pixels())
    if coreset.indices is not None:
        assert loaded.indices is not None
        assert torch.equal(loaded.indices, coreset.indices)


@of_all
def test_every_method_says_what_it_is(name: str) -> None:
    entry = registry.find(name)
    assert entry.paper
    assert entry.learns
    assert entry.cost
    assert entry.build.__doc__
    assert entry.build() == entry.build(), "a method is a value: made of its hyper-parameters and nothing else"
    assert registry.entry_of(entry.build()) is entry


@pytest.mark.parametrize("cls", [*(attar.methods()[name].build for name in [*REDUCERS, *SAMPLERS]), Descent, Training])
def test_every_option_has_a_help_text_and_every_number_a_range_that_holds(cls: type) -> None:
    declared = registry.fields(cls)
    assert set(declared) == {field.name for field in dataclass_fields(cls)}
    for key, field in declared.items():
        assert field.description, f"{key} has no description"
        kinds = {field.annotation, *get_args(field.annotation)}
        if kinds & {int, float}:
            outside = [_outside(bound) for bound in field.metadata if isinstance(bound, Gt | Ge | Lt | Le)]
            assert outside, f"{key} has no range"
            for value in outside:
                with pytest.raises(AttarError, match=f"^it: {key}: .*got {value}"):
                    registry.make(cls, {key: value}, "it")
        if float in kinds:
            with pytest.raises(AttarError, match=f"^it: {key}: "):
                registry.make(cls, {key: float("inf")}, "it")


def _outside(bound: Gt | Ge | Lt | Le) -> object:
    """The nearest number that a bound refuses."""
    match bound:
        case Gt(gt=value) | Lt(lt=value):
            return value
        case Ge(ge=int() | float() as value):
            return value - 1
        case Le(le=int() | float() as value):
            return value + 1
    raise AssertionError(bound)


@of_all
def test_an_unknown_option_is_refused(name: str) -> None:
    with pytest.raises(AttarError, match=r"no option 'btach'|option of .* 'btach'"):
        registry.build(name, {"btach": 1})
