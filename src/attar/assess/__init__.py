"""How good a posterior is, measured so that nothing can look better than it is; one file a question."""

from attar.assess.metrics import Scores
from attar.assess.score import evaluate

__all__ = ["Scores", "evaluate"]
