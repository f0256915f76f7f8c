"""Every argument and every field of the public API is documented."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from typing import Any

import pytest

import attar
from attar.core import registry
from tests.known import new_python

NAMES = [name for name in attar.__all__ if name != "CoresetClassifier"]


def functions(name: str) -> Iterator[tuple[str, Callable[..., Any], str]]:
    """A public function, or the public methods of a class, with their docstrings."""
    found = getattr(attar, name)
    if not inspect.isclass(found):
        yield name, found, inspect.getdoc(found) or ""
        return
    if "__init__" in vars(found) and not is_dataclass(found):
        yield name, found.__init__, f"{found.__doc__}\n{found.__init__.__doc__}"
    for key, value in vars(found).items():
        function = getattr(value, "__func__", value)
        if not key.startswith("_") and inspect.isfunction(function):
            yield f"{name}.{key}", function, inspect.getdoc(function) or ""


def undocumented(function: Callable[..., Any], text: str) -> list[str]:
    """Arguments that are neither under ``Args`` nor named in the text."""
    names = [name for name in inspect.signature(function).parameters if name not in ("self", "cls")]
    return [name for name in names if not re.search(rf"^ *{name}: |``{name}``", text, re.MULTILINE)]


@pytest.mark.parametrize("name", NAMES)
def test_every_argument_is_documented(name: str) -> None:
    assert {where: lost for where, function, text in functions(name) if (lost := undocumented(function, text))} == {}


@pytest.mark.parametrize("name", [name for name in NAMES if is_dataclass(getattr(attar, name))])
def test_every_field_is_documented(name: str) -> None:
    found = getattr(attar, name)
    text, source = found.__doc__ or "", inspect.getsource(found)
    described = {key for key, info in registry.fields(found).items() if info.description}
    lost = [field.name for field in fields(found) if field.name not in described]
    lost = [key for key in lost if not re.search(rf"^ *{key}: ", text, re.MULTILINE)]
    assert [key for key in lost if not re.search(rf"^    {key}: .*#: ", source, re.MULTILINE)] == []


def test_an_argument_that_is_not_documented_is_found() -> None:
    def f(a: int, b: int) -> None: ...

    assert undocumented(f, "Args:\n    a: One.") == ["b"]


def test_a_function_with_the_name_of_a_module_stays_when_the_module_is_imported() -> None:
    modules = {module.name for module in pkgutil.iter_modules(attar.__path__)}
    assert set(attar._SHARED) == modules & set(NAMES)
    for name in attar._SHARED:
        importlib.import_module(f"attar.{name}")
        assert callable(getattr(attar, name))


def test_the_package_lists_its_names_and_refuses_others() -> None:
    assert set(attar.__all__) <= set(dir(attar))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        attar.nothing  # noqa: B018


def test_importing_the_package_loads_no_pytorch_and_its_names_do() -> None:
    code = "import sys, attar; before = 'torch' in sys.modules; attar.Data; print(before, 'torch' in sys.modules)"
    assert new_python(code).communicate()[0].strip() == "False True"


SPLIT = attar.load("digits")
CORESET = attar.reduce(SPLIT, "uniform", per_class=1)
MISTAKES: dict[str, tuple[Callable[[], object], str]] = {
    "a study of nothing": (lambda: attar.compare(None), "StudySpec, the path"),  # type: ignore[arg-type]
    "a report of a number": (lambda: attar.report(3), "source must be of type Study"),  # type: ignore[arg-type]
    "a page of nothing": (lambda: attar.explore(None), "source must be of type"),  # type: ignore[arg-type]
    "training as a mapping": (
        lambda: attar.reduce(SPLIT, "uniform", per_class=1, training={"steps": 3}),  # type: ignore[arg-type]
        "training must be of type Training, got dict",
    ),
    "a size in words": (
        lambda: attar.reduce(SPLIT, "uniform", per_class="a"),  # type: ignore[arg-type]
        "per_class must be a whole number, got 'a'",
    ),
    "half an example": (
        lambda: attar.reduce(SPLIT, "uniform", per_class=1.5),  # type: ignore[arg-type]
        "per_class must be a whole number, got 1.5",
    ),
    "a seed in words": (
        lambda: attar.reduce(SPLIT, "uniform", per_class=1, seed="a"),  # type: ignore[arg-type]
        "seed must be a whole number",
    ),
    "draws in words": (lambda: attar.infer(CORESET, draws="3"), "draws must be a whole"),  # type: ignore[arg-type]
    "a share in words": (lambda: attar.load("digits", val="a"), "must be a number, got 'a'"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize(("call", "says"), MISTAKES.values(), ids=MISTAKES.keys())
def test_arguments_of_another_type_are_refused_in_a_sentence(call: Callable[[], object], says: str) -> None:
    with pytest.raises(attar.AttarError, match=re.escape(says)):
        call()
