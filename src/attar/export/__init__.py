"""Coresets in the formats of other programs."""

from attar.export.run import FILES, FOLDERS, export

__all__ = ["FILES", "FOLDERS", "export"]
