"""Selection of examples; one file per method."""

from attar.select.adaptive import Adaptive
from attar.select.balance import PerClass
from attar.select.budget import SkewWarning
from attar.select.contract import Selection, Selector
from attar.select.dedup import Duplicates, dedup
from attar.select.keep import SelectionWarning
from attar.select.mapreduce import MapReduce
from attar.select.run import select
from attar.select.sources import from_embeddings, from_module
from attar.select.view import View

__all__ = [
    "Adaptive",
    "Duplicates",
    "MapReduce",
    "PerClass",
    "Selection",
    "SelectionWarning",
    "Selector",
    "SkewWarning",
    "View",
    "dedup",
    "from_embeddings",
    "from_module",
    "select",
]
