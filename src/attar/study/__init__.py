"""Comparisons: methods × sizes × seeds on one data set, one network and one training budget."""

from attar.study.results import Run, Study
from attar.study.runner import compare
from attar.study.spec import StudySpec

__all__ = ["Run", "Study", "StudySpec", "compare"]
