from typing import Literal

import pytest
from pydantic import Field
from pydantic.dataclasses import dataclass

import attar
from attar.condense.dm import DM
from attar.core import registry
from attar.core.errors import AttarError


@dataclass(frozen=True)
class Options:
    """Some options."""

    size: int = Field(default=3, ge=1, description="how large")
    rate: float | None = Field(default=None, gt=0, description="how fast")
    kind: Literal["a", "b"] = Field(default="a", description="which")


@dataclass(frozen=True)
class Nothing:
    """No options."""


def test_methods_are_found_without_being_imported_by_name() -> None:
    assert {"uniform", "herding", "dm", "dc", "ensemble"} <= attar.methods().keys()
    assert {entry.family for entry in attar.methods("select").values()} == {"select"}
    assert attar.methods("select", "condense", "bayes").keys() | attar.methods("infer").keys() == attar.methods().keys()


def test_an_unknown_method_gets_the_nearest_of_the_families_asked_for() -> None:
    with pytest.raises(AttarError, match="Unknown method 'hreding': did you mean 'herding'"):
        registry.find("hreding", "select", "condense")
    with pytest.raises(AttarError, match="Unknown sampler 'dm'"):
        registry.find("dm", "infer")


def test_options_are_made_with_defaults_filled_in() -> None:
    assert registry.make(Options, {"rate": 2}, "it") == Options(3, 2.0, "a")
    assert registry.make(Options, {"size": "5"}, "it") == Options(5)  # as a command line gives it


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": 0}, "it: size: Input should be greater than or equal to 1, got 0."),
        ({"size": 1.5}, "it: size: .*, got 1.5."),
        ({"size": "many"}, "it: size: .*, got 'many'."),
        ({"rate": 0}, "it: rate: Input should be greater than 0, got 0."),
        ({"rate": float("inf")}, "it: rate: .*finite number, got inf."),
        ({"rate": "inf"}, "it: rate: .*finite number, got inf."),
        ({"rate": float("nan")}, "it: rate: "),
        ({"kind": "c"}, "it: kind: Input should be 'a' or 'b', got 'c'."),
        ({"szie": 2}, "Unknown option of it 'szie': did you mean 'size'?"),
    ],
)
def test_a_bad_option_is_refused_by_name(options: dict[str, object], message: str) -> None:
    with pytest.raises(AttarError, match=f"^{message}".replace("?", r"\?")) as caught:
        registry.make(Options, options, "it")
    assert "\n" not in str(caught.value)


def test_a_method_without_options_says_so() -> None:
    with pytest.raises(AttarError, match="it takes no option 'size'"):
        registry.make(Nothing, {"size": 1}, "it")


def test_a_method_knows_its_entry_and_its_options() -> None:
    method = registry.build("dm", {"batch": 7})
    assert method == DM(batch=7)
    assert registry.entry_of(method).name == "dm"
    assert registry.options_of(method) == {"batch": 7, "strategy": DM().strategy}
    with pytest.raises(AttarError, match="Options is not registered"):
        registry.entry_of(Options())


def test_two_methods_cannot_have_one_name() -> None:
    with pytest.raises(AttarError, match="both called 'dm': rename one"):
        registry.selector("dm", paper="none", cost="none")(Nothing)
    assert registry.find("dm").build is DM
