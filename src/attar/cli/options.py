"""Command-line options made from dataclasses, so that names, ranges and help are written once."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, cast, get_args, get_origin

import typer
from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass
from pydantic.fields import FieldInfo

from attar.cli.loading import LOADING, Loading
from attar.cli.signature import signed
from attar.core import budget, registry
from attar.core.files import read_toml
from attar.core.method import Descent
from attar.data.tables import Columns
from attar.nets.fast.modes import Accelerate
from attar.nets.train import Training
from attar.select.budget import BALANCED

#: Field of ``Chosen``, prefix of flags, heading, fields, and defaults that differ.
Group = tuple[str, str, str, dict[str, FieldInfo], dict[str, Any]]


METAVARS = {"int": "INT", "float": "FLOAT", "str": "TEXT", "bool": "true|false", "tuple": "NUMBERS"}


class Chosen(NamedTuple):
    """The values that the user set; all others keep their defaults."""

    options: dict[str, Any]
    descent: dict[str, Any]
    training: dict[str, Any]


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class RecipeFile:
    """What `attar reduce` is asked for: a TOML recipe, whose keys are the names of the flags, and the flags."""

    data: str | None = None
    method: str | None = None
    per_class: int | None = None
    fraction: float | None = None
    budget: str = BALANCED
    seed: int = 0
    network: str | None = None
    target: str | None = None
    scaling: str | None = None
    val: float | None = None
    test: str | None = None
    vectors: str | None = None
    length: int | None = None
    columns: Columns = None
    resize: str | None = None
    experts: str | Path | None = None
    base: str | None = None
    accelerate: Accelerate = "none"
    options: dict[str, Any] = Field(default_factory=dict)
    descent: dict[str, Any] = Field(default_factory=dict)
    training: dict[str, Any] = Field(default_factory=dict)

    @property
    def loading(self) -> Loading:
        """How to load the data."""
        return Loading(**{field.name: getattr(self, field.name) for field in fields(Loading)})

    def changed(self, flags: Mapping[str, Any], chosen: Chosen) -> RecipeFile:
        """The recipe with the flags that the user set in place of its own values; flags of other names are ignored."""
        given = {name: flags[name] for name in registry.fields(RecipeFile) if flags.get(name) not in (None, "")}
        if "per_class" in given or "fraction" in given:
            given = {"per_class": None, "fraction": None, **given}
        elif self.per_class is None and self.fraction is None:
            given["per_class"] = 1
        for name, values in chosen._asdict().items():
            given[name] = getattr(self, name) | values
        own = {field.name: getattr(self, field.name) for field in fields(self)}
        return cast(RecipeFile, registry.make(RecipeFile, own | given, "the command"))


def read_recipe(path: Path | None) -> RecipeFile:
    """The recipe in a TOML file, or an empty one; unknown keys are refused."""
    recipe: RecipeFile = registry.make(RecipeFile, _toml(path), f"recipe {path}")
    return recipe


def _toml(path: Path | None) -> dict[str, Any]:
    return {} if path is None else read_toml(path)


def method_in(argv: list[str], command: str) -> str | None:
    """The method of `reduce` or `select`, by flag or recipe; None if no method that the command takes is named."""
    name = _value_of(argv, "--method", "-m")
    if name is None and (recipe := _value_of(argv, "--recipe", "-r")) is not None:
        name = read_recipe(Path(recipe)).method
    families = ("select",) if command == "select" else registry.REDUCERS
    return name if name in registry.methods(*families) else None


def sampler_in(argv: list[str]) -> str | None:
    """The sampler on a command line; None if no existing sampler is named."""
    name = _value_of(argv, "--sampler", "-s")
    return name if name in registry.methods("infer") else None


def with_options(
    method: str | None, training: str = "Training on the coreset", defaults: bool = True
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add the options of a method or sampler, and of training, to a command whose last parameter is ``chosen``.

    Args:
        method: The method or sampler; None for training only.
        training: Heading of the training options.
        defaults: Whether help shows the defaults of ``Training``.
    """
    groups: list[Group] = []
    if method is not None:
        cls = registry.find(method).build
        groups.append(("options", "", f"Options of {method}", registry.fields(cls), {}))
        if cls.descent is not None:
            usual = {name: getattr(cls.descent, name) for name in registry.fields(Descent)}
            groups.append(("descent", "", f"Optimiser settings of {method}", registry.fields(Descent), usual))
    fields = registry.fields(Training)
    unknown = {} if defaults else dict.fromkeys(fields, "")
    groups.append(("training", "train-", training, fields, unknown))
    return _with(groups)


def with_training(usual: Training) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add the options of training on the full data to a command whose last parameter is ``chosen``."""
    infos = {name: info for name, info in registry.fields(Training).items() if name != "steps"}  # given by the epochs
    values = {name: getattr(usual, name) for name in infos}
    return _with([("training", "", "Training on the full data", infos, values)])


def _with(groups: list[Group]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    made = {
        f"{group}__{name}": (group, name, _parameter(f"{group}__{name}", prefix + name, info, panel, usual.get(name)))
        for group, prefix, panel, infos, usual in groups
        for name, info in infos.items()
    }

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        def call(**values: Any) -> None:  # typer calls with exactly the names of the signature below
            chosen = Chosen({}, {}, {})
            for key, (group, name, _) in made.items():
                if (value := values.pop(key)) is not None:
                    getattr(chosen, group)[name] = value
            command(**values, chosen=chosen)

        own = [p for p in inspect.signature(command, eval_str=True).parameters.values() if p.name != "chosen"]
        return signed(call, command, [*own, *(parameter for _, _, parameter in made.values())])

    return decorate


def limited(command: Callable[..., None]) -> Callable[..., None]:
    """Add ``--max-bytes`` to a command that loads data: the limit of its readers, here and in other processes."""

    def call(**values: Any) -> None:
        given = values.pop("max_bytes")
        if given is None:
            return command(**values)
        before = os.environ.get(budget.VARIABLE)
        os.environ[budget.VARIABLE] = str(budget.in_bytes(given, "--max-bytes"))
        try:
            return command(**values)
        finally:
            os.environ.pop(budget.VARIABLE)
            if before is not None:
                os.environ[budget.VARIABLE] = before

    option = typer.Option(
        "--max-bytes",
        metavar="SIZE",
        help="Memory that files may take, such as 2GB; files that need more are refused.",
        show_default=f"${budget.VARIABLE}, else three quarters of the free memory",
        rich_help_panel=LOADING,
    )
    own = list(inspect.signature(command, eval_str=True).parameters.values())
    loading = [place for place, p in enumerate(own, 1) if _panel(p) == LOADING]
    kind = Annotated[str | None, option]
    limit = inspect.Parameter("max_bytes", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
    place = max(loading, default=len(own))
    return signed(call, command, [*own[:place], limit, *own[place:]])


def _panel(parameter: inspect.Parameter) -> str | None:
    """The heading of an option in help."""
    notes = getattr(parameter.annotation, "__metadata__", ())
    return next((note.rich_help_panel for note in notes if hasattr(note, "rich_help_panel")), None)


def describe(info: FieldInfo) -> str:
    """The type and range of an option as text."""
    return "|".join(_choices(info)) or " ".join([_kind(info), *_ranges(info)])


def _parameter(key: str, flag: str, info: FieldInfo, panel: str, usual: Any) -> inspect.Parameter:
    default = info.default if usual is None else usual
    shown = str(default).lower() if isinstance(default, bool) else default
    notes = [] if shown in (None, "") else [f"default: {shown}"]
    notes += [] if _choices(info) else _ranges(info)
    option = typer.Option(
        f"--{flag.replace('_', '-')}",
        help=_sentence(info.description or "") + (f"  [{'; '.join(notes)}]" if notes else ""),
        metavar="|".join(_choices(info)) or METAVARS[_kind(info)],
        show_default=False,
        rich_help_panel=panel,
    )
    annotation = Annotated[str | None, option]
    return inspect.Parameter(key, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


def _sentence(text: str) -> str:
    """A description as a sentence; one that begins with a symbol or a value keeps its case."""
    start = text.split(maxsplit=1)[0].rstrip(",;:") if text else ""
    return f"{text[:1].upper() if start.isalpha() and len(start) > 1 else text[:1]}{text[1:]}."


def _choices(info: FieldInfo) -> list[str]:
    return [str(choice) for choice in get_args(info.annotation)] if get_origin(info.annotation) is Literal else []


def _kind(info: FieldInfo) -> str:
    kinds = [t for t in get_args(info.annotation) if t is not type(None)] or [info.annotation]
    return str(kinds[0].__name__)


def _ranges(info: FieldInfo) -> list[str]:
    signs = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<"}
    return [f"{signs[key]} {value}" for part in info.metadata for key, value in _bounds(part) if key in signs]


def _bounds(part: Any) -> list[tuple[str, Any]]:
    return [(key, getattr(part, key)) for key in ("ge", "gt", "le", "lt") if hasattr(part, key)]


def _value_of(argv: list[str], *flags: str) -> str | None:
    for position, word in enumerate(argv):
        name, equals, value = word.partition("=")
        if name in flags and equals:
            return value
        if word in flags and position + 1 < len(argv):
            return argv[position + 1]
    return None
