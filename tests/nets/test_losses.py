"""Losses by name."""

from __future__ import annotations

import pytest
import torch
from torch.func import vmap
from torch.nn.functional import cross_entropy, multi_margin_loss, one_hot

from attar.core.errors import AttarError
from attar.nets.losses import NAMES, losses
from tests.known import generator


def _logits() -> tuple[torch.Tensor, torch.Tensor]:
    z = 2 * torch.randn(12, 4, generator=generator(1), dtype=torch.float64)
    return z, torch.arange(12) % 4


def test_cross_entropy_and_multi_margin_are_those_of_pytorch() -> None:
    z, y = _logits()
    torch.testing.assert_close(losses("cross-entropy")(z, y), cross_entropy(z, y, reduction="none"))
    torch.testing.assert_close(losses("multi-margin")(z, y), multi_margin_loss(z, y, reduction="none"))


def test_focal_without_focus_is_cross_entropy() -> None:
    z, y = _logits()
    torch.testing.assert_close(losses("focal-0")(z, y), cross_entropy(z, y, reduction="none"))


def test_focal_by_hand() -> None:
    even = torch.zeros(1, 2, dtype=torch.float64)  # p = 1/2: (1/2)^2 log 2
    assert losses("focal")(even, torch.tensor([0])).item() == pytest.approx(0.25 * torch.log(torch.tensor(2.0)).item())


def test_squared_is_half_the_distance_to_the_centred_label() -> None:
    z = torch.tensor([[0.5, 0.0]])
    assert losses("squared")(z, torch.tensor([0])).item() == pytest.approx((0.0**2 + 0.5**2) / 2)
    soft = torch.tensor([[1.5, 2.5]])
    assert losses("squared")(z, soft).item() == pytest.approx((0.25 + 4) / 2)


@pytest.mark.parametrize("name", NAMES)
def test_one_hot_labels_count_as_hard_ones(name: str) -> None:
    z, y = _logits()
    torch.testing.assert_close(losses(name)(z, one_hot(y, 4).double()), losses(name)(z, y))


@pytest.mark.parametrize("name", NAMES)
def test_many_networks_at_once_are_one_by_one(name: str) -> None:
    z, y = _logits()
    many = torch.stack([z, -z])
    one_by_one = torch.stack([losses(name)(each, y) for each in many])
    torch.testing.assert_close(vmap(losses(name), in_dims=(0, None))(many, y), one_by_one)


@pytest.mark.parametrize("name", ["cross-entropi", "focal-x", "focal--1", "focal-inf"])
def test_unknown_losses_are_refused(name: str) -> None:
    with pytest.raises(AttarError, match=r"focal|cross-entropy"):
        losses(name)
