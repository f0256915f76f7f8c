"""Data with its spec, loaded from names, files, arrays and data set objects."""

from attar.data.data import Data, Dataset
from attar.data.load import load
from attar.data.mapped import Mapped
from attar.data.parts import InParts
from attar.data.spec import Classes, Image, Spec, Table, Tokens, Vector
from attar.data.split import Split

__all__ = [
    "Classes",
    "Data",
    "Dataset",
    "Image",
    "InParts",
    "Mapped",
    "Spec",
    "Split",
    "Table",
    "Tokens",
    "Vector",
    "load",
]
