"""Evaluation of posteriors and coresets; one file per question."""

from attar.assess.metrics import Scores
from attar.assess.score import evaluate

__all__ = ["Scores", "evaluate"]
