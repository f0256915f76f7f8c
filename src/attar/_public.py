"""The public names; `attar` loads them when the first one is used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attar.assess import evaluate
from attar.board import submit
from attar.continual.run import continual
from attar.continual.spec import ContinualSpec
from attar.core.errors import AttarError
from attar.core.registry import methods
from attar.coreset import Coreset
from attar.data import Data, Split, load
from attar.engine import Engine
from attar.experts import Schedule, experts
from attar.export import push_to_hub
from attar.infer import Draws, infer
from attar.nas.run import nas
from attar.nas.spec import NasSpec
from attar.nets import Network, network
from attar.nets.train import Training
from attar.plan import plan
from attar.recipe import Recipe
from attar.recommend import recommend
from attar.reduce import reduce
from attar.report import report
from attar.report.board import board
from attar.report.explore import explore
from attar.select import SelectionWarning, SkewWarning, dedup, select
from attar.study import Study, StudySpec, compare

if TYPE_CHECKING:
    from attar.classifier import CoresetClassifier

__all__ = [
    "AttarError",
    "ContinualSpec",
    "Coreset",
    "CoresetClassifier",
    "Data",
    "Draws",
    "Engine",
    "NasSpec",
    "Network",
    "Recipe",
    "Schedule",
    "SelectionWarning",
    "SkewWarning",
    "Split",
    "Study",
    "StudySpec",
    "Training",
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
    "recommend",
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
