from dataclasses import replace

import pytest
import torch
from torch import nn

from attar.nets import network
from attar.nets.train import Training
from attar.select.adacore import AdaCore
from attar.select.contract import Selector
from attar.select.craig import CRAIG
from attar.select.glister import Glister, GlisterVal
from attar.select.gradmatch import GradMatch, GradMatchVal
from attar.select.keep import SelectionWarning
from attar.select.lcmats import LCMatS
from attar.select.sources import from_embeddings
from attar.select.view import View
from tests.known import gaussians, generator
from tests.select.seen import exact


def test_losses_and_residuals_are_those_of_autograd() -> None:
    seen = exact()
    logits = seen.logits.clone().requires_grad_()
    losses = nn.functional.cross_entropy(logits, seen.y, reduction="none")
    assert torch.allclose(seen.losses, losses)
    assert torch.allclose(seen.residuals, torch.autograd.grad(losses.sum(), logits)[0])


def test_soft_labels_are_taken_as_they_are() -> None:
    data = gaussians(8)
    net = network("mlp-d1w5", data.shape, data.classes)
    hard = View(data, net, Training(steps=10), generator(2))
    soft = View(replace(data, y=torch.eye(3)[data.y]), net, hard.training, generator(2), theta=hard.theta)
    assert torch.allclose(soft.residuals, hard.residuals)
    assert torch.allclose(soft.losses, hard.losses, atol=1e-6)


@pytest.mark.parametrize("method", [CRAIG(), LCMatS(), AdaCore(), GradMatch(), GradMatchVal(), Glister(), GlisterVal()])
def test_where_every_gradient_is_zero_features_stand_in_and_a_warning_says_so(method: Selector) -> None:
    x, y = torch.randn(12, 3, generator=generator()), torch.arange(12) % 2
    held = from_embeddings(x[:6] + 0.1, y[:6], torch.zeros(6, 2))
    fitted = from_embeddings(x, y, 500 * torch.eye(2)[y], validation=held)
    with pytest.warns(SelectionWarning, match="all gradients are zero and features are used instead"):
        selection = method.select(fitted, 4, generator())
    assert len(selection.indices.unique()) == 4
    if isinstance(method, CRAIG):  # each gradient is then [h, 1]
        ways = torch.cdist(x, x).sum(0)
        assert int(selection.indices[0]) == int(ways.argmin())
