"""Comparisons: methods × sizes × seeds on one data set, one network and one training budget."""

from attar.study.results import Run, Study

__all__ = ["Run", "Study"]
