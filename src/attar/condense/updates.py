"""The optimiser of what is learnt: every parameter by the descent's learner, at the learning rate of its group."""

from __future__ import annotations

import torch
from torch import Tensor

from attar.condense.contract import Descent
from attar.condense.source import Source
from attar.nets.learner import SGD, Adam, Learner, State
from attar.nets.train import rate

BLOCK = 1 << 16  # numbers that are updated at a time, so that temporary tensors stay small


class Updates:
    """Updates the parameters of a source in place.

    Args:
        source: What is learnt; its groups name the learning rates.
        descent: Optimiser settings.
    """

    def __init__(self, source: Source, descent: Descent) -> None:
        self.descent = descent
        self.learner: Learner = SGD(descent.lr, descent.momentum) if descent.optimiser == "sgd" else Adam(descent.lr)
        self.learnt = [(part, descent.rate(name)) for name, parts in source.groups().items() for part in parts]
        for parameter, _ in self.learnt:
            parameter.data = parameter.data.contiguous()
        self.states = [self.learner.init(parameter.detach().view(-1)) for parameter, _ in self.learnt]

    @torch.no_grad()
    def step(self, number: int) -> None:
        """Take the step after ``number`` steps along the gradients; parameters without one stay."""
        for (parameter, start), state in zip(self.learnt, self.states, strict=True):
            if parameter.grad is not None:
                lr = rate(start, self.descent.schedule, number, self.descent.steps)
                self._move(state, parameter.grad.reshape(-1), lr)

    def _move(self, state: State, gradient: Tensor, lr: float) -> None:
        for start in range(0, len(gradient), BLOCK):
            block = slice(start, start + BLOCK)
            old = State(state.theta[block], state.first[block], state.second[block], state.steps)
            new = self.learner.step(old, gradient[block], lr)
            for kept, value in zip(old[:3], new[:3], strict=True):
                kept.copy_(value)
        state.steps.add_(1)

    def tensors(self) -> dict[str, Tensor]:
        """What the next step depends on beside the parameters, by name."""
        return {f"{i}.{name}": tensor for i, state in enumerate(self.states) for name, tensor in _memory(state).items()}

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """Take over ``tensors()`` of the same source and descent; other shapes are a ValueError."""
        for name, tensor in self.tensors().items():
            if tensors[name].shape != tensor.shape:
                raise ValueError(f"the optimiser's state has other shapes than {tuple(tensor.shape)}")
            tensor.copy_(tensors[name])


def _memory(state: State) -> dict[str, Tensor]:
    return {name: tensor for name, tensor in state._asdict().items() if name != "theta" and tensor.numel()}
