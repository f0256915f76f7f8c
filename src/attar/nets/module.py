"""A module of PyTorch as a function of its parameters."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from attar.core.errors import AttarError

borrowing = threading.RLock()  #: held by whoever uses PyTorch's global generator


class Slot(NamedTuple):
    """Where a module looks up one of its parameters or buffers."""

    owner: dict[str, Any]
    key: str
    name: str  #: in ``named_parameters`` or ``named_buffers``; tied ones share it
    own: Tensor


class Stateless:
    """Calls a module with other parameters and buffers, like ``torch.func.functional_call`` but faster.

    Args:
        module: The module; it is unchanged between calls.
        forwards: Replacement forward passes for some of its submodules.
    """

    def __init__(
        self, module: nn.Module, forwards: Mapping[nn.Module, Callable[[Tensor], Tensor]] | None = None
    ) -> None:
        self.module = module
        self._forwards = [(vars(part), forward) for part, forward in (forwards or {}).items()]
        names = {id(value): key for key, value in (*module.named_parameters(), *module.named_buffers())}
        owners: list[dict[str, Any]] = []
        for part in module.modules():
            owners += [part._parameters, part._buffers]
        self._slots = [
            Slot(own, key, names[id(value)], value) for own in owners for key, value in own.items() if value is not None
        ]

    def __call__(self, state: Mapping[str, Tensor], x: Tensor) -> Tensor:
        """The module's output for ``x`` with all parameters and buffers by name."""
        try:
            for slot in self._slots:
                slot.owner[slot.key] = state[slot.name]
            for own, forward in self._forwards:
                own["forward"] = forward
            output: Tensor = self.module(x)
        finally:
            for slot in self._slots:
                slot.owner[slot.key] = slot.own
            for own, _ in self._forwards:
                own.pop("forward", None)
        return output


def learnt(module: nn.Module) -> dict[str, Tensor]:
    """The parameters that are learnt, by name."""
    found: dict[str, Tensor] = {key: value for key, value in module.named_parameters() if value.requires_grad}
    if not found or any(nn.parameter.is_lazy(value) for value in found.values()):
        raise AttarError("A network needs parameters of known size to learn: give every layer its sizes.")
    return found


def flat(module: nn.Module) -> Tensor:
    """The parameters that are learnt, as one vector."""
    return torch.cat([value.detach().flatten() for value in learnt(module).values()])


def fresh(build: Callable[[], nn.Module], seed: int) -> nn.Module:
    """A new module whose random initialisation depends only on ``seed``."""
    # Layers can only be initialised from PyTorch's global CPU generator. So it is seeded while the module is built and
    # then restored. This works for every module and gives the same weights on every device. The lock keeps two threads
    # from doing so at once.
    with borrowing, torch.random.fork_rng(devices=[]), torch.device("cpu"):
        torch.default_generator.manual_seed(seed)
        return build()
