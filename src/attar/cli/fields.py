"""Flags for the fields of a spec, and the spec that a recipe and flags make."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

import typer

from attar.cli.arguments import numbers, words
from attar.cli.options import Chosen
from attar.core import registry
from attar.core.errors import AttarError
from attar.core.files import read_toml
from attar.study.settings import explicit, made, values_of

Spec = TypeVar("Spec")


def flag_of(spec: type, many: Container[str], name: str, *flags: str) -> Any:
    """The option for a field of a spec, with its name, help and default.

    Args:
        spec: The dataclass.
        many: Fields whose flags take several values, separated by commas.
        name: The field.
        flags: The names of the option, if they differ from that of the field.
    """
    info = registry.fields(spec)[name]
    default = info.get_default(call_default_factory=True)
    usual = ",".join(map(str, default)) if name in many and isinstance(default, tuple) else str(default)
    if isinstance(default, bool):
        usual = f"--{'' if default else 'no-'}{name}"
    text = f"{info.description or ''}{', separated by commas' if name in many else ''}."
    shown: str | bool = usual if default not in (None, ()) else False
    return typer.Option(
        *(flags or (f"--{name.replace('_', '-')}",)), help=text[0].upper() + text[1:], show_default=shown
    )


def spec_of(
    kind: type[Spec],
    recipe: Path | None,
    flags: Mapping[str, Any],
    chosen: Chosen,
    *,
    many: Container[str],
    counts: Container[str],
) -> Spec:
    """The spec of a recipe, or the default one, changed by the flags that the user set.

    Args:
        kind: The dataclass, with fields ``training``, ``sampler`` and ``sampler_options``.
        recipe: A TOML file, if there is one.
        flags: All parameters of the command; those of other names than the fields are ignored.
        chosen: Options of training and of the sampler.
        many: Fields with several values, separated by commas.
        counts: Those of them that are whole numbers.
    """
    base: Any = made(kind, {} if recipe is None else read_toml(recipe), f"recipe {recipe}")
    changes: dict[str, Any] = {}
    for name, value in flags.items():
        if name in registry.fields(kind) and value is not None:
            split = numbers if name in counts else lambda text, _: words(text)
            changes[name] = split(value, name.replace("_", "-")) if name in many else value
    if "data" in changes:
        changes = {"test_data": None, **changes}  # the recipe's test set belongs to the recipe's data
    if sized := {"per_class", "fraction"} & {*changes}:  # which replaces the sizes of the recipe, whichever they are
        usual = {name: registry.fields(kind)[name].default for name in ("per_class", "fraction")}
        if len(sized) == 2:
            raise AttarError("Give sizes either as --per-class or as --fraction, not both.")
        changes = usual | changes
    if "given" in registry.fields(kind):
        changes["given"] = (*base.given, *explicit(changes | {"training": chosen.training}))
    changes["training"] = asdict(base.training) | chosen.training
    kept = base.sampler_options if changes.get("sampler", base.sampler) == base.sampler else {}
    changes["sampler_options"] = kept | chosen.options
    return made(kind, values_of(base) | changes, "the command")
