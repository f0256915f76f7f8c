"""Which method for which data, from committed results."""

from attar.recommend.choose import GOALS
from attar.recommend.run import Recommendation, recommend

__all__ = ["GOALS", "Recommendation", "recommend"]
