"""What comes in: data with its domain, read from names, files, arrays and data sets."""

from attar.data.data import Data, Domain
from attar.data.load import load
from attar.data.split import Split

__all__ = ["Data", "Domain", "Split", "load"]
