import pytest
import torch
from torch import Tensor

from attar.core.errors import AttarError
from attar.data.transform import CHUNK, ZCA, Identity, Standard, Transform, fit, restore


def correlated(n: int = 500, seed: int = 0) -> Tensor:
    gen = torch.Generator().manual_seed(seed)
    mix = torch.randn(12, 12, generator=gen)
    return (torch.randn(n, 12, generator=gen) @ mix + torch.arange(12.0)).reshape(n, 3, 2, 2)


@pytest.mark.parametrize("kind", ["none", "standard", "zca"])
@pytest.mark.parametrize("shape", [(-1, 3, 2, 2), (-1, 12)])
def test_invert_undoes_apply_and_restore_brings_it_back(kind: str, shape: tuple[int, ...]) -> None:
    x = correlated().reshape(shape)
    scaling = fit(kind, x)
    z = scaling.apply(x)
    assert z.shape == x.shape
    assert z.dtype == x.dtype
    assert torch.allclose(scaling.invert(z), x, atol=1e-3)
    again = restore(scaling.kind, scaling.tensors())
    assert torch.equal(again.apply(x), z)
    assert torch.equal(again.invert(z), scaling.invert(z))


def test_standard_is_per_channel_for_images_and_per_column_for_features() -> None:
    x = correlated()
    for scaled, axes in ((Standard.fit(x).apply(x), (0, 2, 3)), (Standard.fit(x.flatten(1)).apply(x.flatten(1)), (0,))):
        assert scaled.mean(axes).abs().max() < 1e-5
        assert (scaled.std(axes, correction=0) - 1).abs().max() < 1e-5


def test_standard_by_hand() -> None:
    x = torch.tensor([[1.0, 5.0], [3.0, 5.0]])
    scaling = Standard.fit(x)
    assert scaling.mean.tolist() == [2, 5]
    assert scaling.std.tolist() == [1, 1]  # the second column is constant: divided by 1
    assert scaling.apply(x).tolist() == [[-1, 0], [1, 0]]


@pytest.mark.parametrize(("offset", "spread"), [(1e4, 1.0), (0.0, 1e-9), (0.0, 1e9)])
def test_standard_survives_far_means_and_extreme_units(offset: float, spread: float) -> None:
    x = (correlated().flatten(1).double() * spread + offset).float()
    scaled = Standard.fit(x).apply(x)
    assert (scaled.std(0, correction=0) - 1).abs().max() < 1e-2


def test_a_constant_channel_stays_finite() -> None:
    x = torch.full((50, 2, 3, 3), 0.1)
    assert Standard.fit(x).apply(x).abs().max() < 1e-6
    assert torch.isfinite(ZCA.fit(x).apply(x)).all()


def test_fits_do_not_depend_on_chunks() -> None:
    x = correlated(CHUNK + 100)
    flat = x.flatten(1).double()
    assert torch.allclose(Standard.fit(x.flatten(1)).std.double(), flat.std(0, correction=0), rtol=1e-5)
    assert torch.allclose(ZCA.fit(x).mean.double(), flat.mean(0), rtol=1e-5)


def test_zca_without_ridge_whitens() -> None:
    x = correlated().double()
    z = ZCA.fit(x, ridge=0).apply(x).flatten(1)
    assert torch.allclose(z.T @ z / len(z), torch.eye(12).double(), atol=1e-6)
    assert z.mean(0).abs().max() < 1e-6


def test_zca_is_the_symmetric_root_of_the_inverse_covariance_with_ridge() -> None:
    x = correlated().double()
    flat = x.flatten(1)
    covariance = flat.T.cov(correction=0)
    scaling = ZCA.fit(x, ridge=0.1)
    whitener = scaling.basis @ scaling.scale.diag() @ scaling.basis.T
    ridged = covariance + (0.1 * covariance.diagonal().mean() + 1e-12) * torch.eye(12).double()
    assert torch.allclose(whitener, whitener.T)
    assert torch.allclose(whitener @ ridged @ whitener, torch.eye(12).double(), atol=1e-8)
    assert torch.allclose(scaling.apply(x).flatten(1), (flat - flat.mean(0)) @ whitener, atol=1e-8)


def test_zca_stays_closest_to_the_image_among_whitenings() -> None:
    # Any rotation of a whitening whitens too; ZCA is the one with the largest correlation to what it was given.
    x = correlated().double()
    centred = x.flatten(1) - x.flatten(1).mean(0)
    z = ZCA.fit(x, ridge=0).apply(x).flatten(1)
    rotation, _ = torch.linalg.qr(torch.randn(12, 12, generator=torch.Generator().manual_seed(1), dtype=torch.float64))
    assert (z * centred).sum() > (z @ rotation * centred).sum()


def test_unknown_and_incomplete_scalings_are_refused() -> None:
    x = correlated()
    with pytest.raises(AttarError, match="did you mean 'zca'"):
        fit("zcaa", x)
    with pytest.raises(AttarError, match="did you mean 'zca'"):
        restore("zcaa", {})
    with pytest.raises(AttarError, match="incomplete"):
        restore("standard", {"mean": x})


def test_identity_changes_nothing() -> None:
    x, scaling = correlated(), fit("none", correlated())
    kept: Transform = Identity()
    assert scaling == kept
    assert scaling.apply(x) is x


def test_zca_of_more_values_than_memory_holds_pairs_of_is_refused() -> None:
    with pytest.raises(AttarError, match=r"covariance of 200,000 values, for zca, .* takes at least 960\.0 GB"):
        ZCA.fit(torch.zeros(2, 200_000))
