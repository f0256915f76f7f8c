"""The registry of methods by name."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from math import isfinite
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import ValidationError
from pydantic.fields import FieldInfo

from attar.core.errors import AttarError, unknown

if TYPE_CHECKING:
    from attar.core.method import Method

REDUCERS = ("select", "condense", "bayes")  #: families whose methods make coresets
ROOMS = (*REDUCERS, "infer")

Class = TypeVar("Class", bound=type)


@dataclass(frozen=True)
class Entry:
    """A registered method and its description."""

    name: str
    family: str
    paper: str  #: who proposed it
    learns: str
    cost: str  #: what drives its cost
    build: type[Method]
    about: str = ""  #: what it does, in a few words
    choose: str = ""  #: when to choose it, in a few words
    takes: str = ""  #: typical time: ten examples per class of Fashion-MNIST, one core, default options


_entries: dict[str, Entry] = {}


def selector(
    name: str, *, paper: str, cost: str, about: str = "", choose: str = "", takes: str = ""
) -> Callable[[Class], Class]:
    """Register a class as a method that picks real examples; arguments are the fields of ``Entry``."""
    return _register(name, "select", paper, "which examples", cost, about, choose, takes)


def condenser(
    name: str, *, paper: str, learns: str, cost: str, about: str = "", choose: str = "", takes: str = ""
) -> Callable[[Class], Class]:
    """Register a class as a method that learns synthetic examples; arguments are the fields of ``Entry``."""
    return _register(name, "condense", paper, learns, cost, about, choose, takes)


def pseudo_coreset(
    name: str, *, paper: str, learns: str, cost: str, about: str = "", choose: str = "", takes: str = ""
) -> Callable[[Class], Class]:
    """Register a class as a method that learns examples whose posterior approximates that of the full data."""
    return _register(name, "bayes", paper, learns, cost, about, choose, takes)


def sampler(
    name: str, *, paper: str, cost: str, about: str = "", choose: str = "", takes: str = ""
) -> Callable[[Class], Class]:
    """Register a class as a method that infers a posterior; arguments are the fields of ``Entry``."""
    return _register(name, "infer", paper, "network parameters", cost, about, choose, takes)


def methods(*families: str) -> dict[str, Entry]:
    """Every registered method of the ``families`` (of all if none is given), by name."""
    _discover()
    return {name: e for name, e in _entries.items() if not families or e.family in families}


def find(name: str, *families: str) -> Entry:
    """The entry of this name, or an error that suggests the most similar."""
    known = methods(*families)
    if name not in known:
        raise unknown(_kind(families), name, known)
    return known[name]


def _kind(families: tuple[str, ...]) -> str:
    return "sampler" if families == ("infer",) else "method"


def build(name: str, options: Mapping[str, Any], *families: str) -> Any:
    """Make the method of this name with these hyper-parameters; unknown or bad ones are refused."""
    return make(find(name, *families).build, options, name)


def resolve(method: Any, options: Mapping[str, Any] | None, *families: str) -> Any:
    """A method given by name, built with these hyper-parameters; or the given object itself, which has its own."""
    if isinstance(method, str):
        return build(method, options or {}, *families)
    if options:
        kind = _kind(families)
        raise AttarError(f"Pass options to the constructor of the {kind} object, or give the {kind} by name.")
    return method


def make(cls: type, options: Mapping[str, Any], name: str) -> Any:
    """Make a dataclass of options; ``name`` is used in error messages."""
    known = fields(cls)
    for key in options:
        if key not in known:
            raise (
                unknown(f"option of {name}", key, known)
                if known
                else AttarError(f"{name} takes no option {key!r}: leave it out.")
            )
    try:
        made = cls(**options)
    except ValidationError as error:
        first = error.errors()[0]
        if first["type"] == "value_error":  # raised by the class itself, with its own message
            raise AttarError(f"{name}: {first['ctx']['error']}") from error
        where = ".".join(str(part) for part in first["loc"]) or "options"
        raise AttarError(f"{name}: {where}: {first['msg']}, got {first['input']!r}.") from error
    for key in options:
        value = getattr(made, key)
        if isinstance(value, float) and not isfinite(value):
            raise AttarError(f"{name}: {key}: Input should be a finite number, got {value}.")
    return made


def entry_of(method: object) -> Entry:
    """The entry whose class made this object."""
    for entry in methods().values():
        if type(method) is entry.build:
            return entry
    raise AttarError(
        f"{type(method).__name__} is not registered: decorate it with attar.core.registry's selector or condenser."
    )


def fields(cls: type) -> dict[str, FieldInfo]:
    """The options of a pydantic dataclass, by name: type, default, range and help."""
    found: dict[str, FieldInfo] = getattr(cls, "__pydantic_fields__", {})
    return found


def options_of(method: Any) -> dict[str, Any]:
    """The hyper-parameters of a method as plain values."""
    return asdict(method)


def changed(method: Any) -> dict[str, Any]:
    """The hyper-parameters of a method that are not its defaults, as plain values."""
    usual = {name: field.get_default(call_default_factory=True) for name, field in fields(type(method)).items()}
    return {name: value for name, value in options_of(method).items() if value != usual[name]}


def _register(
    name: str, family: str, paper: str, learns: str, cost: str, about: str, choose: str, takes: str
) -> Callable[[Class], Class]:
    def add(cls: Class) -> Class:
        taken = _entries[name].build if name in _entries else cls
        if (taken.__module__, taken.__qualname__) != (cls.__module__, cls.__qualname__):  # a reload is not a conflict
            raise AttarError(f"{cls.__qualname__} and {taken.__qualname__} are both called {name!r}: rename one.")
        _entries[name] = Entry(name, family, paper, learns, cost, cls, about, choose, takes)
        return cls

    return add


@cache
def _discover() -> None:
    # Methods register as they are imported, so that adding one is adding a file.
    for room in ROOMS:
        package = importlib.import_module(f"attar.{room}")
        for module in pkgutil.iter_modules(package.__path__):
            importlib.import_module(f"attar.{room}.{module.name}")
