import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from attar.core.errors import AttarError
from attar.core.files import write_tensors
from attar.data import Data
from attar.nets import Network, network
from attar.nets.train import Training, train
from attar.select import view as module_of_view
from attar.select.balance import PerClass
from attar.select.contract import Selector
from attar.select.craig import CRAIG
from attar.select.el2n import EL2N
from attar.select.entropy import Entropy
from attar.select.forgetting import Forgetting
from attar.select.gradmatch import GradMatch, GradMatchVal
from attar.select.herding import Herding
from attar.select.kcenter import KCenter
from attar.select.keep import SelectionWarning
from attar.select.lcmats import LCMatS
from attar.select.scoring import scoring_network
from attar.select.sources import from_embeddings, from_module
from attar.select.uniform import Uniform
from attar.select.view import View
from tests.known import HANG, gaussians, generator, images, python

DATA = gaussians(8)
NET = network("mlp-d1w5", DATA.shape, DATA.classes)
SHORT = Training(steps=10)


def view(chunk: int = 1024) -> View:
    return View(DATA, NET, SHORT, generator(2), chunk)


def test_features_and_logits_are_what_the_trained_network_makes_of_the_examples() -> None:
    seen = view()
    theta = train(NET, DATA, SHORT, generator(2))[0]
    assert torch.equal(seen.theta, theta)
    assert torch.equal(seen.features, NET.features(theta, DATA.x))
    assert torch.allclose(seen.logits, NET(theta, DATA.x), atol=1e-6)
    assert not seen.features.requires_grad
    assert not seen.logits.requires_grad


def test_features_do_not_depend_on_the_chunk() -> None:
    assert torch.allclose(view(5).features, view().features, atol=1e-6)
    assert torch.allclose(view(5).logits, view().logits, atol=1e-6)


def test_what_is_not_asked_for_is_not_computed() -> None:
    seen = View(DATA.map(lambda x: x * torch.nan), NET, SHORT, generator(2))  # training on it would fail
    assert len(seen.part(torch.tensor([1, 2]))) == 2


def test_the_network_is_trained_once_and_the_generator_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    monkeypatch.setattr(module_of_view, "scoring_network", lambda *a: calls.append(1) or scoring_network(*a))
    seen = view()
    before = seen.gen.get_state()
    first = seen.features
    assert seen.features is first
    assert torch.equal(seen.part(torch.tensor([4])).features, first[[4]])
    _ = seen.logits, seen.gradients, seen.curvatures
    assert calls == [1]
    assert torch.equal(seen.gen.get_state(), before)


def test_a_part_sees_its_examples_through_the_network_of_the_whole() -> None:
    seen = view()
    part = seen.part(torch.tensor([7, 3, 11]))
    assert torch.equal(part.theta, seen.theta)
    assert torch.equal(part.features, seen.features[[7, 3, 11]])
    assert torch.equal(part.logits, seen.logits[[7, 3, 11]])
    assert torch.equal(part.data.x, DATA.x[[7, 3, 11]])
    inner = part.part(torch.tensor([2]))
    assert torch.equal(inner.features, seen.features[[11]])
    assert inner.whole is seen


def test_the_validation_set_is_seen_through_the_same_network() -> None:
    held = gaussians(4, seed=5)
    seen = View(DATA, NET, SHORT, generator(2), validation=held)
    assert torch.equal(seen.validation.features, NET.features(seen.theta, held.x))
    assert seen.part(torch.tensor([0, 1])).validation is seen.validation
    assert torch.equal(seen.of_class(1).validation.data.y, torch.ones(4, dtype=torch.int64))


def test_who_never_looks_at_the_validation_set_trains_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module_of_view, "scoring_network", _never)
    seen = View(DATA, NET, SHORT, generator(2), validation=gaussians(4, seed=5))
    assert len(PerClass(Uniform()).select(seen, 2, generator()).indices) == 6


def test_a_class_without_validation_examples_is_named_by_who_needs_them() -> None:
    held = gaussians(4, seed=5)
    seen = View(DATA, NET, SHORT, generator(2), validation=held[held.y != 1])
    assert len(PerClass(GradMatch()).select(seen, 2, generator()).indices) == 6
    with pytest.raises(AttarError, match="Class 1 has no validation examples"):
        PerClass(GradMatchVal()).select(seen, 2, generator())


def test_validation_embeddings_are_seen_through_the_last_layer_that_the_examples_gave() -> None:
    x, y = torch.randn(30, 4, generator=generator()), torch.arange(30) % 3
    bare = from_embeddings(x[20:], y[20:])
    seen = from_embeddings(x[:20], y[:20], training=SHORT, validation=bare)
    weight, bias = seen.network.head(seen.theta)
    assert torch.allclose(seen.validation.logits, x[20:] @ weight.T + bias, atol=1e-5)
    assert torch.allclose(seen.of_class(1).validation.features, x[20:][y[20:] == 1])
    with pytest.raises(AttarError, match="give both or none"):
        _ = from_embeddings(x[:20], y[:20], torch.zeros(20, 3), validation=bare).validation
    with pytest.raises(AttarError, match="a class that the examples lack"):
        _ = from_embeddings(x[:20], y[:20] % 2, training=SHORT, validation=bare).validation


def test_arrays_that_may_not_be_written_to_are_read(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.random.default_rng(0).normal(size=(20, 4)).astype(np.float32))
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    assert len(KCenter().select(from_embeddings(mapped), 3, generator()).indices) == 3


def test_a_trained_module_is_looked_through_as_it_is() -> None:
    module = nn.Sequential(nn.Linear(6, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Dropout(0.5), nn.Linear(4, 3))
    before = {key: value.clone() for key, value in module.state_dict().items()}
    seen = from_module(module, DATA)
    still = nn.Sequential(*module).eval()
    assert torch.allclose(seen.logits, still(DATA.x), atol=1e-6)
    assert torch.allclose(seen.features, still[:4](DATA.x), atol=1e-6)
    module.train()
    assert all(torch.equal(value, before[key]) for key, value in module.state_dict().items())
    frozen = from_module(nn.Sequential(nn.Linear(6, 3)).requires_grad_(False), DATA)
    assert len(CRAIG().select(frozen, 2, generator()).indices) == 2


def test_embeddings_are_the_features_themselves() -> None:
    x = np.random.default_rng(0).normal(size=(20, 4))
    seen = from_embeddings(x.astype(np.float32), np.arange(20) % 3)
    assert torch.equal(seen.features, torch.from_numpy(x).float())
    assert seen.logits.shape == (20, 3)
    assert torch.equal(seen.logits, seen.network(seen.theta, seen.features))
    told = from_embeddings(x, np.arange(20) % 3, np.zeros((20, 5)))
    assert torch.equal(told.probabilities, torch.full((20, 5), 0.2))


def test_methods_without_labels_say_what_is_missing() -> None:
    bare = from_embeddings(torch.randn(9, 3, generator=generator()))
    assert len(KCenter().select(bare, 3, generator()).indices) == 3
    for method in (CRAIG(), Entropy(), LCMatS(), EL2N(), Forgetting()):
        with pytest.raises(AttarError, match="This needs labels: give them, or choose"):
            method.select(bare, 3, generator())
    with pytest.raises(AttarError, match="This needs labels"):
        bare.of_class(0)


@pytest.mark.parametrize(
    ("features", "labels", "logits", "said"),
    [
        (torch.ones(4), None, None, "features have shape"),
        (torch.ones(4, 2), torch.zeros(3).long(), None, "one row per example"),
        (torch.ones(4, 2), torch.zeros(4), None, "whole number from 0"),
        (torch.ones(4, 2), torch.tensor([0, 1, 2, -1]), None, "whole number from 0"),
        (torch.ones(4, 2), None, torch.zeros(3, 2), "one row per example"),
        (torch.ones(4, 2), torch.arange(4), torch.zeros(4, 2), "Label 3 has no logit"),
    ],
)
def test_embeddings_that_do_not_fit_are_refused(
    features: torch.Tensor, labels: torch.Tensor | None, logits: torch.Tensor | None, said: str
) -> None:
    with pytest.raises(AttarError, match=said):
        from_embeddings(features, labels, logits)


def test_nan_embeddings_are_refused_by_name() -> None:
    x = torch.randn(9, 3, generator=generator())
    x[4, 1] = torch.nan
    with pytest.raises(AttarError, match="features of example 4 hold NaN or Inf"):
        Herding().select(from_embeddings(x), 2, generator())
    with pytest.raises(AttarError, match="features of example 4"):
        Entropy().select(from_embeddings(x, torch.arange(9) % 2), 2, generator())
    with pytest.raises(AttarError, match="logits of example 4"):
        Entropy().select(from_embeddings(torch.ones(9, 3), logits=x), 2, generator())


@pytest.mark.parametrize("method", [Herding(), KCenter()])
def test_constant_features_are_warned_of(method: Selector) -> None:
    with pytest.warns(SelectionWarning, match="Every example has the same features"):
        selection = method.select(from_embeddings(torch.ones(5, 2)), 3, generator())
    assert selection.indices.tolist() == [0, 1, 2]


def test_networks_look_as_cross_entropy_trained_them_whatever_coresets_are_inferred_with() -> None:
    data = gaussians(8)
    net = network("mlp-d1w8", data.shape, data.classes)
    ways = [Training(steps=5, loss=loss) for loss in ("cross-entropy", "squared")]
    a, b = (View(data, net, way, generator()) for way in ways)
    assert torch.equal(a.theta, b.theta)


def test_a_network_without_a_linear_last_layer_has_logits_and_no_features() -> None:
    net = Network("squashed", DATA.shape, 3, lambda: nn.Sequential(nn.Linear(6, 3), nn.Tanh()))
    seen = View(DATA, net, SHORT, generator())
    assert len(Entropy().select(seen, 4, generator()).indices) == 4
    for method in (CRAIG(), KCenter(), GradMatch()):
        with pytest.raises(AttarError, match=r"last layer.*must be a plain nn.Linear"):
            method.select(seen, 4, generator())


def test_what_was_seen_is_kept_on_disk_by_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = View(DATA, NET, SHORT, generator(2), cache=tmp_path)
    features, logits = first.features, first.logits
    assert len(list(tmp_path.iterdir())) == 1

    monkeypatch.setattr(module_of_view, "scoring_network", _never)
    again = View(DATA, NET, SHORT, generator(2), cache=tmp_path)
    assert torch.equal(again.features, features)
    assert torch.equal(again.logits, logits)
    others = [
        View(DATA.map(_last_moved), NET, SHORT, generator(2), cache=tmp_path),
        View(DATA, NET, Training(steps=11), generator(2), cache=tmp_path),
        View(DATA, NET, SHORT, generator(3), cache=tmp_path),
        View(DATA, network("mlp-d1w6", DATA.shape, 3), SHORT, generator(2), cache=tmp_path),
    ]
    for other in others:
        with pytest.raises(AssertionError, match="trained again"):
            _ = other.features


def _never(*_: object) -> None:
    raise AssertionError("trained again")


def _last_moved(x: torch.Tensor) -> torch.Tensor:
    return torch.cat([x[:-1], x[-1:] + 1])


def test_networks_that_differ_in_no_parameter_are_kept_apart(tmp_path: Path) -> None:
    def through(middle: type[nn.Module]) -> View:
        net = Network("same", DATA.shape, 3, lambda: nn.Sequential(nn.Linear(6, 5), middle(), nn.Linear(5, 3)))
        return View(DATA, net, SHORT, generator(2), theta=net.init(generator()), cache=tmp_path)

    assert not torch.equal(through(nn.ReLU).features, through(nn.Tanh).features)
    assert len(list(tmp_path.iterdir())) == 2


def _shorten(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


@pytest.mark.parametrize("damage", [lambda path: write_tensors(path, {"features": torch.ones(3)}, {}), _shorten])
def test_a_file_that_is_no_view_is_kept_aside_and_the_view_is_computed(
    damage: Callable[[Path], object], tmp_path: Path
) -> None:
    seen, again = (View(DATA, NET, SHORT, generator(2), cache=tmp_path) for _ in range(2))
    features = seen.features
    assert seen._file is not None
    damage(seen._file)
    with pytest.warns(UserWarning, match=r"kept as view-\w+\.safetensors\.unreadable-1, and it is computed again"):
        assert torch.equal(again.features, features)
    assert len(list(tmp_path.iterdir())) == 2


WAITING = """
import sys, warnings
from attar.select import view as module_of_view
from attar.select.view import View
from tests.select.test_view import DATA, NET, SHORT, generator
train = module_of_view.scoring_network
def trained(*given):
    print("trains", flush=True)
    sys.stdin.readline()
    return train(*given)
def told(message, *rest, **more):
    print(str(message).partition(" process")[0], flush=True)
module_of_view.scoring_network, warnings.showwarning = trained, told
print(float(View(DATA, NET, SHORT, generator(2), cache=sys.argv[1]).logits.sum()))
"""


def test_of_two_processes_with_one_cache_one_trains_and_the_other_waits(tmp_path: Path) -> None:
    first = python(WAITING, tmp_path, stdin=subprocess.PIPE)
    assert first.stdout is not None
    assert first.stdout.readline() == "trains\n"
    second = python(WAITING, tmp_path, stdin=subprocess.PIPE)
    assert second.stdout is not None
    assert second.stdout.readline() == "Waiting for\n"
    found, _ = first.communicate("go\n", timeout=HANG)
    assert second.communicate(timeout=HANG)[0] == found  # it did not train
    assert float(found) == float(View(DATA, NET, SHORT, generator(2)).logits.sum())


def test_images_are_seen_too() -> None:
    data = images(4)
    seen = View(data, network("convnet-d1w4", data.shape, 3), SHORT, generator())
    assert seen.features.ndim == 2
    assert seen.gradients.norms.shape == (12,)
    assert isinstance(seen.data, Data)
