"""A network that looks at the other examples of a batch is found out, and no other is."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn

import attar
from attar import Split, Training
from attar.assess.transfer import transfer
from attar.assess.validation import validation_score
from attar.core.errors import AttarError
from attar.infer import Draws
from attar.infer.separate import require_separate
from attar.nets import network
from attar.study import compare
from tests.known import generator, images

DATA = images(4)
QUICK = Training(steps=2)
BATCH = "convnet-d1w4-batch"


@pytest.mark.parametrize("norm", ["instance", "layer", "group", "nonorm"])
@pytest.mark.parametrize("activation", ["relu", "sigmoid"])
def test_other_norms_see_one_example_at_a_time(norm: str, activation: str) -> None:
    net = network(f"convnet-d2w8-{norm}-{activation}", DATA.shape, 3)
    require_separate(net)
    theta = net.init(generator())
    torch.testing.assert_close(net(theta, DATA.x)[:1], net(theta, DATA.x[:1]), rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("name", [BATCH, "convnet-d2w8-batch-sigmoid", "resnet10-batch"])
def test_batch_norm_is_refused_with_the_name_to_use_instead(name: str) -> None:
    net = network(name, (1, 16, 16), 3)
    theta, x = net.init(generator()), torch.randn(4, 1, 16, 16, generator=generator())
    assert not torch.allclose(net(theta, x)[:1], net(theta, x[:1]), atol=1e-3)  # the reason
    with pytest.raises(AttarError, match=f"use {net.name.replace('-batch', '')} for inference"):
        require_separate(net)


def test_a_module_of_one_s_own_is_looked_at_too() -> None:
    with pytest.raises(AttarError, match="use group or instance norm"):
        require_separate(
            network(lambda: nn.Sequential(nn.BatchNorm1d(4, track_running_stats=False), nn.Linear(4, 2)), (4,), 2)
        )
    require_separate(network(lambda: nn.Sequential(nn.BatchNorm1d(4), nn.Linear(4, 2)).eval(), (4,), 2))


def test_the_global_generator_is_left_alone() -> None:
    state = torch.get_rng_state()
    require_separate(network("mlp-d1w4", (4,), 2))
    assert torch.equal(state, torch.get_rng_state())


def test_every_way_to_a_prediction_refuses_it_before_it_works(tmp_path: Path) -> None:
    split, net = Split(DATA, DATA, DATA), network(BATCH, DATA.shape, 3)
    with pytest.raises(AttarError, match="depend on the rest of the batch"):
        attar.infer(DATA, draws=1, network=BATCH, training=QUICK)
    with pytest.raises(AttarError, match="depend on the rest of the batch"):
        compare({"methods": ["uniform"], "network": BATCH, "training": QUICK}, data=split, folder=tmp_path / "study")
    assert not (tmp_path / "study").exists()
    with pytest.raises(AttarError, match="depend on the rest of the batch"):
        validation_score(DATA, net, QUICK)
    Draws(net, net.init(generator())[None], DATA.spec).save(tmp_path / "p.safetensors")
    with pytest.raises(AttarError, match="depend on the rest of the batch"):
        Draws.load(tmp_path / "p.safetensors")
    coreset = attar.reduce(DATA, "uniform", per_class=1, network="convnet-d1w4", training=QUICK)
    (row,) = transfer(coreset, split, [BATCH], seeds=[0])
    assert "depend on the rest of the batch" in (row.problem or "")
    own = replace(coreset, recipe=replace(coreset.recipe, network=BATCH))
    assert attar.infer(own, draws=1, network="convnet-d1w4").network.name == "convnet-d1w4"  # the remedy
