"""Class-incremental learning: a network learns in stages, and a memory keeps a few examples of the old ones."""

from attar.continual.results import Continual, Episode
from attar.continual.run import continual
from attar.continual.spec import ContinualSpec

__all__ = ["Continual", "ContinualSpec", "Episode", "continual"]
