"""Coresets in the formats of other programs."""

from attar.export.push import Pushed, push_to_hub
from attar.export.run import FILES, FOLDERS, export

__all__ = ["FILES", "FOLDERS", "Pushed", "export", "push_to_hub"]
