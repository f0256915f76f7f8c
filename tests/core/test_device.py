import pytest
import torch

from attar.core.device import device_of
from attar.core.errors import AttarError


def test_a_device_is_found_by_its_name() -> None:
    assert device_of("cpu") == device_of(torch.device("cpu")) == torch.device("cpu")


@pytest.mark.parametrize("name", ["nonsense", "cuda:99", "meta"])
def test_one_that_cannot_compute_is_refused_with_a_remedy(name: str) -> None:
    with pytest.raises(AttarError, match=f"No device '{name}'.*: use --device cpu") as caught:
        device_of(name)
    assert "\n" not in str(caught.value)
