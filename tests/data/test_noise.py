import pytest
import torch

from attar.data.noise import normal
from tests.known import generator


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_noise_has_the_shape_and_kind_of_a_tensor_and_comes_from_the_generator(dtype: torch.dtype) -> None:
    like = torch.zeros(100, 200, dtype=dtype)
    found = normal(like, generator())
    assert (found.shape, found.dtype) == (like.shape, dtype)
    assert torch.equal(found, normal(like, generator()))
    assert not torch.equal(found, normal(like, generator(1)))
    assert found.mean().item() == pytest.approx(0, abs=0.03)
    assert found.var().item() == pytest.approx(1, rel=0.04)
