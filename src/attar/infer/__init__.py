"""Inference of posteriors; one file per sampler."""

from attar.infer.contract import Draws, Posterior, Sampler
from attar.infer.run import infer

__all__ = ["Draws", "Posterior", "Sampler", "infer"]
