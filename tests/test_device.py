"""From data to scores on the device of ``ATTAR_TEST_DEVICE``: on a machine with a GPU, the tests of its code."""

from pathlib import Path
from typing import Any

import pytest
import torch

import attar
from tests.known import digits

NETWORK, TRAINING = "convnet-d1w8", attar.Training(steps=100, batch=64)
#: Options and optimiser settings.
METHODS: dict[str, tuple[dict[str, Any], dict[str, Any] | None]] = {
    "herding": ({}, None),
    "dm": ({"batch": 16}, {"steps": 3}),
    "vbpc": ({"batch": 32, "pool": 1, "net_steps": 5}, {"steps": 3}),
}


def kind(x: torch.Tensor) -> str:
    return x.device.type


@pytest.mark.parametrize("method", METHODS)
def test_the_whole_way_is_computed_on_the_device(method: str, device: str, tmp_path: Path) -> None:
    wanted, (options, descent) = torch.device(device).type, METHODS[method]
    split = digits().to(device)
    coreset = attar.reduce(
        split, method, per_class=5, network=NETWORK, options=options, descent=descent, training=TRAINING
    )
    posterior = attar.infer(coreset, draws=2)
    assert [kind(x) for x in (split.train.x, coreset.data.x, posterior.theta)] == [wanted] * 3
    assert attar.evaluate(posterior, split.val).accuracy > 0.3  # chance is 0.1
    coreset.save(tmp_path / "coreset.safetensors")
    assert torch.equal(attar.Coreset.load(tmp_path / "coreset.safetensors").data.x, coreset.data.x.cpu())


@pytest.mark.filterwarnings("ignore::attar.infer.diagnose.MixingWarning")
@pytest.mark.parametrize("sampler", ["ensemble", "sghmc", "laplace"])
def test_draws_stay_on_the_device_and_repeat(sampler: str, device: str) -> None:
    data = digits().train[:50].to(device)
    options = {"sghmc": {"chains": 2, "warmup": 5, "thin": 4, "step": 0.01}}.get(sampler, {})
    short = attar.Training(steps=5)
    one, two = (attar.infer(data, sampler, draws=2, network=NETWORK, training=short, options=options) for _ in range(2))
    assert kind(one.theta) == torch.device(device).type
    assert torch.allclose(one.theta, two.theta, rtol=0, atol=1e-4)
