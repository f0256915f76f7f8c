"""A quick validation score while a coreset is learnt."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from attar.assess.metrics import accuracy
from attar.core.streams import evaluation, seed_of
from attar.data import Data
from attar.infer import infer
from attar.infer.separate import require_separate
from attar.nets import Network
from attar.nets.train import Training

EXAMPLES, STEPS = 1000, 100


def validation_score(val: Data, network: Network, training: Training) -> Callable[[Data], float]:
    """A function: accuracy on some of ``val`` of one network trained briefly on given examples."""
    require_separate(network)
    few = val.sample(EXAMPLES, evaluation(0, val.device, "validation"))
    short = replace(training, steps=min(training.steps, STEPS))

    def score(examples: Data) -> float:
        posterior = infer(examples, "ensemble", draws=1, seed=seed_of("validation", 0), network=network, training=short)
        return accuracy(posterior.predict(few.x), few.hard)

    return score
