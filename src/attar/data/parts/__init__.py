"""Tables larger than memory, read in batches."""

from attar.data.parts.in_parts import InParts

__all__ = ["InParts"]
