"""How good a posterior is, measured so that nothing can look better than it is."""

from attar.evaluate.metrics import Scores
from attar.evaluate.run import evaluate
from attar.evaluate.study import Run, Study

__all__ = ["Run", "Scores", "Study", "evaluate"]
