from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from attar.core.errors import AttarError
from attar.core.files import read_tensors, write_tensors
from attar.data import Spec
from attar.data.split import Origin
from attar.data.transform import Standard
from attar.infer import Draws
from attar.nets import network
from tests.known import damaged, generator, images, spec_header

DATA = images(4)
NET = network("convnet-d1w4", DATA.shape, 3)


def posterior() -> Draws:
    gen = generator()
    return Draws(NET, torch.stack([NET.init(gen) for _ in range(3)]), DATA.spec)


def saved(tmp_path: Path) -> Path:
    posterior().save(tmp_path / "posterior.safetensors")
    return tmp_path / "posterior.safetensors"


def sure_and_unsure() -> Draws:
    """Two classifiers of one number: logits (10x, 0) and (0, 0)."""
    theta = torch.tensor([[10.0, 0, 0, 0], [0, 0, 0, 0]])  # weight (2, 1), then bias (2,)
    return Draws(network("linear", (1,), 2), theta, Spec.of((1,), 2))


def test_probabilities_are_averaged_and_not_logits() -> None:
    predicted = sure_and_unsure().predict(torch.tensor([[1.0], [-1.0]]))
    sure = torch.tensor(10.0).sigmoid().item()
    assert predicted[:, 0].tolist() == pytest.approx([(sure + 0.5) / 2, (1 - sure + 0.5) / 2], abs=1e-6)
    assert predicted[0, 0].item() < 0.76  # the mean logit, 5, would give 0.993


def test_one_draw_predicts_as_its_network_does() -> None:
    one = replace(posterior(), theta=posterior().theta[:1])
    assert torch.allclose(one.predict(DATA.x), NET(one.theta[0], DATA.x).softmax(1).double(), atol=1e-6)


@pytest.mark.parametrize("chunk", [1, 5, 12, 1000])
def test_prediction_does_not_depend_on_the_chunk(chunk: int) -> None:
    assert torch.allclose(replace(posterior(), chunk=chunk).predict(DATA.x), posterior().predict(DATA.x), atol=1e-6)


def test_nothing_to_predict_gives_nothing() -> None:
    assert posterior().predict(DATA.x[:0]).shape == (0, 3)


def test_prediction_keeps_no_graph() -> None:
    draws = replace(posterior(), theta=posterior().theta.requires_grad_())
    assert not draws.predict(DATA.x).requires_grad


def test_samples_are_draws_each_as_likely() -> None:
    draws = sure_and_unsure()
    first = draws.sample(4000, generator())[:, 0]
    assert set(first.tolist()) == {10.0, 0.0}
    assert abs((first == 10).float().mean().item() - 0.5) < 0.05
    assert torch.equal(draws.sample(9, generator(1)), draws.sample(9, generator(1)))


def test_examples_in_their_own_units_are_scaled_first() -> None:
    spec = Spec.of((1,), 2, Standard(torch.tensor([7.0]), torch.tensor([2.0])), "d")
    draws = replace(sure_and_unsure(), spec=spec)
    own, scaled = draws.predict_proba(torch.tensor([[9.0]]).numpy()), draws.predict(torch.tensor([[1.0]]))
    assert own == pytest.approx(scaled.numpy())


def test_a_posterior_whose_classes_have_no_names_comes_back(tmp_path: Path) -> None:
    sure_and_unsure().save(tmp_path / "posterior")
    loaded = Draws.load(tmp_path / "posterior")
    assert loaded.network.classes == 2
    x = torch.tensor([[0.3]])
    assert torch.equal(loaded.predict(x), sure_and_unsure().predict(x))


def test_every_flipped_bit_is_one_sentence(tmp_path: Path) -> None:
    path = saved(tmp_path)
    for broken in damaged(path.read_bytes()):
        path.write_bytes(broken)
        with pytest.raises(AttarError) as refused:
            Draws.load(path)
        assert "\n" not in str(refused.value)


@pytest.mark.parametrize("length", [0, 8, 100, -1])
def test_a_file_cut_short_is_refused(length: int, tmp_path: Path) -> None:
    path = saved(tmp_path)
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(AttarError, match="not a complete safetensors file"):
        Draws.load(path)


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    write_tensors(tmp_path / "other", {"theta": torch.zeros(2, 3)}, {"format": "attar-coreset-1"})
    with pytest.raises(AttarError, match="not a posterior of this library"):
        Draws.load(tmp_path / "other")


@pytest.mark.parametrize("name", ["theta", "transform.mean", "transform.std"])
def test_a_missing_tensor_is_refused(name: str, tmp_path: Path) -> None:
    path = saved(tmp_path)
    tensors, header = read_tensors(path)
    write_tensors(path, {key: value for key, value in tensors.items() if key != name}, header)
    with pytest.raises(AttarError, match="corrupt or incompatible"):
        Draws.load(path)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("theta", lambda t: t[:, 1:]),
        ("theta", lambda t: t[0]),
        ("theta", lambda t: t[:0]),
        ("theta", lambda t: t.long()),
        ("transform.mean", lambda m: torch.zeros(3)),
        ("transform.std", lambda s: 0 * s),
    ],
)
def test_a_tensor_that_does_not_fit_is_refused(name: str, change: Callable[[Tensor], Tensor], tmp_path: Path) -> None:
    path = saved(tmp_path)
    tensors, header = read_tensors(path)
    write_tensors(path, tensors | {name: change(tensors[name])}, header)
    with pytest.raises(AttarError, match="corrupt or incompatible"):
        Draws.load(path)


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("network", ""),
        ("network", "[" * 100_000),
        ("network", "mlp"),
        ("network", "resent"),
        ("origin", ""),
        ("origin", "[" * 100_000),
        ("origin", '{"source": "a.csv", "run": "rm"}'),
        ("spec", "{"),
        ("spec", "[" * 100_000),
        ("spec", spec_header(classes="ab")),
        ("spec", spec_header(transform="zca")),
        ("spec", spec_header(element={"kind": "image", "shape": [1, 9, 0]})),
        ("spec", spec_header(element={"kind": "image", "shape": "8"})),
        ("spec", spec_header(element={"kind": "sound", "shape": [1, 8, 8]})),
        ("spec", spec_header(element={"kind": "image"})),
    ],
)
def test_a_changed_header_is_refused(key: str, text: str, tmp_path: Path) -> None:
    path = saved(tmp_path)
    tensors, header = read_tensors(path)
    write_tensors(path, tensors, header | {key: text})
    with pytest.raises(AttarError, match="corrupt or incompatible"):
        Draws.load(path)


def test_a_posterior_remembers_where_its_data_is_and_files_that_do_not_are_read(tmp_path: Path) -> None:
    origin = Origin("/somewhere/t.csv", target="kind", columns={"a": ("x", "y")})
    path = tmp_path / "posterior"
    replace(posterior(), origin=origin).save(path)
    assert Draws.load(path).origin == origin
    tensors, header = read_tensors(path)
    write_tensors(path, tensors, {key: text for key, text in header.items() if key != "origin"})
    assert Draws.load(path).origin is None
