"""The training of scoring networks, which stops by fit, and the ways to read gradients off them."""

from __future__ import annotations

import warnings
from typing import Literal, NamedTuple

import torch
from torch import Generator, Tensor
from torch.nn.functional import softmax

from attar.core.errors import AttarError
from attar.data import Dataset
from attar.nets import Network
from attar.nets.train import Trainer, Training
from attar.select.keep import SelectionWarning

SAMPLE = 512  #: examples on which the training accuracy is measured
Gradient = Literal["exact", "published"]
Mode = Literal["eval", "train"]


class Look(NamedTuple):
    """How a method looks at the examples; the default is the network at the end of its training."""

    fit: float = 1.0  #: training accuracy at which the training stops, from guessing (0) to all correct (1: never)
    gradient: Gradient = "exact"
    mode: Mode = "eval"


def scoring_network(
    network: Network, data: Dataset, labels: Tensor, training: Training, gen: Generator, fit: float
) -> Tensor:
    """Parameters of a network, ``(p,)``, trained until it fits as well as asked, or to the end of its steps.

    The accuracy is measured on the same examples, equally spaced in the data, after each of the first ten steps and
    then whenever the number of steps has grown by a tenth. A network that does not get there is used with a warning.

    Args:
        network: The network.
        data: The training examples.
        labels: The class of each.
        training: The training settings; their steps are the most that are taken.
        gen: Random generator of initial parameters and minibatches; measuring draws nothing from it.
        fit: Where to stop: 0 is the accuracy of always guessing the most frequent class, 1 never stops.
    """
    trainer = Trainer(network, data, training, network.init(gen)[None])
    places = torch.linspace(0, len(data) - 1, min(SAMPLE, len(data)), device=labels.device).long()
    sample, classes, guess = data.take(places).x, labels[places], float(labels.bincount().max()) / len(labels)
    target = guess + (1 - guess) * fit
    found, check = 0.0, 1
    for step in range(1, training.steps + 1):
        trainer.step(gen)
        if fit < 1 and (step == check or step == training.steps):
            with torch.no_grad():
                found = float((network(trainer.theta[0], sample).argmax(1) == classes).float().mean())
            if found >= target:
                return trainer.theta[0]
            check = max(step + 1, step * 11 // 10)
    if fit < 1:
        warnings.warn(
            f"The scoring network should reach a training accuracy of {target:.0%}, and has {found:.0%} after all its "
            f"{training.steps} steps; it is used as it is: allow more training steps (--train-steps) or a smaller fit.",
            SelectionWarning,
            stacklevel=2,
        )
    return trainer.theta[0]


def warn_if_separate(network: Network) -> None:
    """Warn if it cannot matter in which batches examples pass through the network."""
    if network.separate:
        warnings.warn(
            f"mode=train changes nothing, because {network.name} predicts every example independently of its batch: "
            "leave it out, or choose a network with batch norm, such as convnet-d3w32-batch.",
            SelectionWarning,
            stacklevel=4,
        )


def of_one_class(labels: Tensor, size: int) -> list[Tensor]:
    """Batches of one class each, as equal as possible, of at most the size that the network is trained with."""
    batches: list[Tensor] = []
    for c in labels.unique():
        index = (labels == c).nonzero().flatten()
        if len(index) < 2:
            raise AttarError(f"mode=train needs 2 examples of every class, and class {int(c)} has 1: leave it out.")
        batches += index.tensor_split(-(-len(index) // max(2, size)))
    return batches


def logit_gradients(logits: Tensor, labels: Tensor, gradient: Gradient) -> Tensor:
    r"""Gradients of the losses with respect to the logits, ``(n, classes)``.

    With :math:`p = \mathrm{softmax}(z)` and labels y as probabilities, the exact one is :math:`p - y`. Published code
    applies the cross-entropy, which has a softmax of its own, to p:

    .. math:: r = \mathrm{softmax}(p) - y, \qquad \nabla_z = p \circ (r - \langle p, r \rangle)

    It vanishes for every confident prediction, correct or not.
    """
    p = softmax(logits, 1)
    if gradient == "exact":
        return p - labels
    r = softmax(p, 1) - labels
    return p * (r - (p * r).sum(1, keepdim=True))
