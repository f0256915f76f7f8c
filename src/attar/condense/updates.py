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
        self.states: dict[int, State] = {}  #: by parameter, from its first step on

    @torch.no_grad()
    def step(self, number: int) -> None:
        """Take the step after ``number`` steps along the gradients; parameters without one stay."""
        for index, (parameter, start) in enumerate(self.learnt):
            if parameter.grad is not None:
                lr = rate(start, self.descent.schedule, number, self.descent.steps)
                self._move(self._state(index), parameter.grad.reshape(-1), lr)

    def _state(self, index: int) -> State:
        """The state of a parameter, whose numbers it shares."""
        parameter = self.learnt[index][0]
        parameter.data = parameter.data.contiguous()
        theta = parameter.detach().view(-1)
        old = self.states.get(index) or self.learner.init(theta)
        self.states[index] = old._replace(theta=theta)
        return self.states[index]

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
        return {f"{i}.{name}": tensor for i, state in self.states.items() for name, tensor in _memory(state).items()}

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """Take over ``tensors()`` of the same source and descent; others are a LookupError or ValueError."""
        for index in {int(name.partition(".")[0]) for name in tensors}:
            for name, tensor in _memory(self._state(index)).items():
                found = tensors[f"{index}.{name}"]
                if found.shape != tensor.shape:
                    raise ValueError(f"the optimiser's state has other shapes than {tuple(tensor.shape)}")
                tensor.copy_(found)


def _memory(state: State) -> dict[str, Tensor]:
    return {name: tensor for name, tensor in state._asdict().items() if name != "theta" and tensor.numel()}
