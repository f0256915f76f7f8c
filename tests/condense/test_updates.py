"""Parameters move as by PyTorch's optimisers, in blocks or at once, each group at its own rate."""

from typing import Literal

import pytest
import torch
from torch import Tensor, nn

from attar.condense import updates
from attar.condense.source import Source, Synthetic
from attar.condense.updates import Updates
from attar.core.method import Descent
from attar.nets.train import rate
from tests.known import generator


class Three(Source):
    """Examples in another memory order than usual, labels, and a parameter that no loss depends on."""

    def __init__(self) -> None:
        super().__init__()
        gen = generator(3)
        channels_last = torch.randn(4, 3, 5, 5, generator=gen).to(memory_format=torch.channels_last)
        self.x, self.y = nn.Parameter(channels_last), nn.Parameter(torch.randn(4, 2, generator=gen))
        self.unused = nn.Parameter(torch.ones(()))

    def forward(self) -> Synthetic:
        raise NotImplementedError

    def groups(self) -> dict[str, list[nn.Parameter]]:
        return {"examples": [self.x, self.unused], "labels": [self.y]}


def _loss(x: Tensor, y: Tensor) -> Tensor:
    return (x.sin() ** 2).sum() + (y - 0.3).pow(4).sum()


@pytest.mark.parametrize("block", [7, 1 << 14])
@pytest.mark.parametrize(("optimiser", "momentum"), [("adam", 0.5), ("sgd", 0.5), ("sgd", 0.0)])
def test_steps_are_those_of_torch(
    optimiser: Literal["adam", "sgd"], momentum: float, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(updates, "BLOCK", block)
    descent = Descent(steps=9, optimiser=optimiser, lr=0.05, label_lr=0.01, momentum=momentum, schedule="cosine")
    source, other = Three(), Three()
    groups = [{"params": [other.x], "lr": 0.05}, {"params": [other.y], "lr": 0.01}]
    theirs = torch.optim.Adam(groups) if optimiser == "adam" else torch.optim.SGD(groups, momentum=momentum)
    ours = Updates(source, descent)
    for number in range(9):
        source.zero_grad()
        _loss(source.x, source.y).backward()
        ours.step(number)
        theirs.zero_grad()
        _loss(other.x, other.y).backward()
        for group, start in zip(theirs.param_groups, (0.05, 0.01), strict=True):
            group["lr"] = rate(start, "cosine", number, 9)
        theirs.step()
    torch.testing.assert_close(source.x, other.x.contiguous())
    torch.testing.assert_close(source.y, other.y)
    assert source.unused.item() == 1
    assert (source.x - Three().x).abs().min() > 1e-4  # every number moved


@pytest.mark.parametrize("optimiser", ["adam", "sgd"])
def test_a_source_may_change_its_precision_before_the_first_step(optimiser: Literal["adam", "sgd"]) -> None:
    source = Three()
    ours = Updates(source, Descent(optimiser=optimiser))
    source.double()
    before = source.x.detach().clone()
    _loss(source.x, source.y).backward()
    ours.step(0)
    assert source.x.dtype == torch.float64
    assert (source.x - before).abs().min() > 1e-6


def test_a_state_of_other_examples_is_refused() -> None:
    source = Three()
    ours, descent = Three(), Descent(optimiser="adam")
    made = Updates(source, descent)
    assert not made.tensors()
    _loss(source.x, source.y).backward()
    made.step(0)
    kept = made.tensors()
    assert sorted(kept) == [f"{i}.{name}" for i in (0, 2) for name in ("first", "second", "steps")]
    Updates(ours, descent).restore(kept)
    with pytest.raises(ValueError, match="other shapes"):
        Updates(ours, descent).restore({**kept, "0.first": torch.zeros(3)})
    with pytest.raises(LookupError):
        Updates(ours, descent).restore({name: tensor for name, tensor in kept.items() if name != "0.second"})
    with pytest.raises(LookupError):
        Updates(ours, descent).restore({**kept, "3.first": torch.zeros(3)})
