"""Reduce a data set to a few examples, infer posteriors from them, and evaluate both."""

from __future__ import annotations

import importlib
import os
import sys
from importlib.metadata import version
from types import ModuleType
from typing import TYPE_CHECKING, Any

# The one place where threads are told to sleep, not spin, while they wait for each other: spinning slows a process up
# to 30 times where it shares its cores. OpenMP reads this once, when torch is loaded, which nothing above does, and
# processes started from here inherit it. A value that the user set is kept.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

if TYPE_CHECKING:
    from attar._public import *  # noqa: F403
    from attar._public import __all__ as __all__

__version__ = version("attar")

#: Functions with the name of a module, which an import of that module must not replace.
_SHARED = ("board", "continual", "experts", "infer", "nas", "plan", "recommend", "reduce", "report", "select")


class _Package(ModuleType):
    """The package, whose public names load PyTorch and the rest when the first of them is used."""

    def __getattr__(self, name: str) -> Any:
        if name == "__all__" or not name.startswith("_"):
            public = importlib.import_module("attar._public")
            if name == "__all__" or name in public.__all__:
                return getattr(public, name)
        raise AttributeError(f"module 'attar' has no attribute {name!r}")

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in _SHARED and isinstance(value, ModuleType)):
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self.__all__})


sys.modules[__name__].__class__ = _Package
