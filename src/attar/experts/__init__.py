"""Experts: trajectories of networks trained on the full data, kept on disk."""

from attar.experts.build import experts
from attar.experts.find import find, missing
from attar.experts.manifest import Manifest
from attar.experts.progress import Progress
from attar.experts.schedule import PAPER, SMALL, Schedule
from attar.experts.store import Trajectories

__all__ = ["PAPER", "SMALL", "Manifest", "Progress", "Schedule", "Trajectories", "experts", "find", "missing"]
