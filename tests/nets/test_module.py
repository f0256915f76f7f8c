import pytest
import torch
from torch import nn
from torch.func import functional_call

from attar.nets.module import Stateless
from tests.known import generator


class Pair(nn.Module):
    """A weight in two places, and a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(3, 3), nn.Linear(3, 3)
        self.second.weight = self.first.weight
        self.register_buffer("shift", torch.arange(3.0))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.second(self.first(x).relu() + self.shift)
        return out


def test_it_is_functional_call_and_leaves_the_module_alone() -> None:
    module, x = Pair(), torch.randn(4, 3, generator=generator())
    own = {**dict(module.named_parameters()), **dict(module.named_buffers())}
    gen = generator(1)
    state = {name: torch.randn(value.shape, generator=gen) for name, value in own.items()}
    before, kept = module(x), {name: value.clone() for name, value in own.items()}
    assert torch.equal(Stateless(module)(state, x), functional_call(module, state, (x,)))
    assert torch.equal(module(x), before)
    assert all(value is own[name] for name, value in module.named_parameters())
    assert all(torch.equal(value, kept[name]) for name, value in own.items())


def test_a_forward_pass_that_fails_leaves_the_module_alone() -> None:
    module = Pair()
    state = {name: torch.zeros_like(value) for name, value in module.named_parameters()} | {"shift": torch.zeros(3)}
    weight = module.first.weight
    with pytest.raises(RuntimeError):
        Stateless(module)(state, torch.zeros(4, 7))
    assert module.first.weight is weight


def test_other_forward_passes_are_used_and_taken_back() -> None:
    module, x = Pair(), torch.randn(4, 3, generator=generator())
    state = {**dict(module.named_parameters()), **dict(module.named_buffers())}
    doubled = Stateless(module, {module.second: lambda x: 2 * nn.functional.linear(x, module.second.weight)})
    inside = module.first(x).relu() + state["shift"]
    assert torch.equal(doubled(state, x), 2 * inside @ module.second.weight.T)
    assert torch.equal(Stateless(module)(state, x), module(x))
    assert "forward" not in vars(module.second)
