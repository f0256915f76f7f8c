"""Reduce a data set to a few examples, infer posteriors from them, and evaluate both."""

from __future__ import annotations

import os
from importlib.metadata import version
from typing import TYPE_CHECKING

# The one place where threads are told to sleep, not spin, while they wait for each other: spinning slows a process up
# to 30 times where it shares its cores. OpenMP reads this once, when torch is loaded, so it stands before the imports
# that load torch, and processes started from here inherit it. A value that the user set is kept.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

from attar.assess import evaluate
from attar.board import submit
from attar.continual.run import continual
from attar.continual.spec import ContinualSpec
from attar.core.errors import AttarError
from attar.core.registry import methods
from attar.coreset import Coreset
from attar.data import Data, Split, load
from attar.experts import experts
from attar.export import push_to_hub
from attar.infer import Draws, infer
from attar.nas.run import nas
from attar.nas.spec import NasSpec
from attar.nets import Network, network
from attar.nets.train import Training
from attar.plan import plan
from attar.recipe import Recipe
from attar.reduce import reduce
from attar.report import report
from attar.report.board import board
from attar.report.explore import explore
from attar.select import SelectionWarning, dedup, select
from attar.study import Study, StudySpec, compare

if TYPE_CHECKING:
    from attar.classifier import CoresetClassifier

__version__ = version("attar")

__all__ = [
    "AttarError",
    "ContinualSpec",
    "Coreset",
    "CoresetClassifier",
    "Data",
    "Draws",
    "NasSpec",
    "Network",
    "Recipe",
    "SelectionWarning",
    "Split",
    "Study",
    "StudySpec",
    "Training",
    "__version__",
    "board",
    "compare",
    "continual",
    "dedup",
    "evaluate",
    "experts",
    "explore",
    "infer",
    "load",
    "methods",
    "nas",
    "network",
    "plan",
    "push_to_hub",
    "reduce",
    "report",
    "select",
    "submit",
]


def __getattr__(name: str) -> object:
    if name == "CoresetClassifier":  # the only name that needs scikit-learn, which is an extra
        from attar.classifier import CoresetClassifier

        return CoresetClassifier
    raise AttributeError(f"module 'attar' has no attribute {name!r}")
