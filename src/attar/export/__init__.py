"""The artifact in the formats that other tools read."""

from attar.export.run import FILES, FOLDERS, export

__all__ = ["FILES", "FOLDERS", "export"]
