"""Robustness to the corruptions of CIFAR-10-C."""

from attar.assess.corruption.family import CORRUPTIONS, Corruption, corrupt
from attar.assess.corruption.table import Corrupted, corruption_table

__all__ = ["CORRUPTIONS", "Corrupted", "Corruption", "corrupt", "corruption_table"]
