"""The pool of networks: ages, minibatches, mirror images, label scale, and features in little memory."""

import pytest
import torch

import attar
from attar.bayes.vbpc import VBPC
from attar.condense import contract, pool
from attar.condense.contract import Task
from attar.condense.frepo import FRePo
from attar.condense.pool import Pooled
from attar.condense.source import Source
from attar.core.errors import AttarError
from attar.data import Data
from attar.infer.head import regressors
from attar.nets import network as build_network
from attar.nets.objective import Objective
from tests.known import gaussian_task, generator, images

METHODS = [VBPC, FRePo]


def image_task(net: str = "convnet-d1w4") -> Task:
    data = images()
    return Task(data, build_network(net, data.spec), data.classes)


def begin(method: Pooled, task: Task, per_class: int = 2) -> Source:
    return method.source(task.data.sample_per_class(per_class, generator(1)), generator())


def test_staggered_networks_are_replaced_at_different_times_though_none_is_trained_before() -> None:
    task = gaussian_task(network="mlp-d1w8")
    even, spread = (VBPC(batch=4, pool=4, net_steps=8, staggered=on).init(task, generator()) for on in (False, True))
    assert even.age.tolist() == [0, 0, 0, 0]
    assert spread.age.tolist() == [0, 2, 4, 6]
    assert spread.steps.tolist() == [0, 0, 0, 0]  # or Adam would take its first gradients for old ones
    assert torch.equal(spread.theta, even.theta)


def test_a_network_that_counts_as_old_is_replaced_sooner() -> None:
    task, method = gaussian_task(network="mlp-d1w8"), VBPC(batch=4, pool=1, net_steps=3)
    source, gen = begin(method, task), generator()
    old = method.init(task, generator())._replace(age=torch.tensor([1]))
    once = method.loss(source(), old, task, gen).state
    twice = method.loss(source(), once, task, gen).state
    assert (int(once.age), int(once.steps)) == (2, 1)
    assert (int(twice.age), int(twice.steps)) == (0, 0)


@pytest.mark.parametrize("kind", METHODS)
@pytest.mark.parametrize(("net_batch", "seen"), [(4, 4), (6, 6), (100, 6)])
def test_a_network_is_trained_on_a_minibatch_of_the_examples(
    kind: type[Pooled], net_batch: int, seen: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = []

    class Recorded(Objective):
        def gradient(self, theta: torch.Tensor, batch: Data, *, graph: bool = False) -> torch.Tensor:  # type: ignore[override]
            sizes.append(len(batch))
            return super().gradient(theta, batch, graph=graph)

    monkeypatch.setattr(contract, "Objective", Recorded)
    task, method = gaussian_task(network="mlp-d1w8"), kind(batch=4, net_batch=net_batch)
    method.loss(begin(method, task)(), method.init(task, generator()), task, generator())
    assert sizes == [seen]


@pytest.mark.parametrize("kind", METHODS)
def test_with_flips_the_closed_form_has_every_example_and_its_mirror_image(kind: type[Pooled]) -> None:
    task, method = image_task(), kind(batch=4, pool=1, flips=True)
    syn, state = begin(method, task)(), method.init(image_task(), generator())
    seen, _ = method.look(syn, state, task, generator())
    both = torch.cat([syn.x, syn.x.flip(3)])
    assert torch.allclose(seen.phi, regressors(task.network, task.network.features(state.theta[0], both)), atol=1e-6)
    assert torch.equal(seen.targets[:6], seen.targets[6:])
    assert method.inference.options["flips"] is True


@pytest.mark.parametrize("kind", METHODS)
def test_only_images_can_be_mirrored(kind: type[Pooled]) -> None:
    with pytest.raises(AttarError, match="Only images can be mirrored"):
        attar.reduce(gaussian_task().data, kind(flips=True), per_class=1, network="mlp-d1w4", descent={"steps": 1})


def test_flips_are_off_by_default_since_mirrored_digits_are_no_digits() -> None:
    assert not any(kind().flips for kind in METHODS)


@pytest.mark.parametrize("kind", METHODS)
def test_the_label_scale_multiplies_centred_labels(kind: type[Pooled]) -> None:
    task = gaussian_task(network="mlp-d1w8")
    plain, half = (begin(kind(label_scale=scale), task, 1)().y for scale in (1.0, 0.5))
    assert torch.equal(plain, torch.eye(3))
    assert torch.allclose(half - 1 / 3, (plain - 1 / 3) / 2)


def test_features_of_many_examples_are_the_same_in_less_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    task = image_task("convnet-d2w8")
    theta, x = task.network.init(generator()), torch.randn(24, 1, 8, 8, generator=generator())
    kept: list[tuple[int, torch.Tensor, torch.Tensor]] = []
    for most in (pool.GRAPH, 0):
        monkeypatch.setattr(pool, "GRAPH", most)
        monkeypatch.setattr("attar.nets.passes.FORWARD", 4 * task.network.activations)
        sizes: dict[int, int] = {}

        def pack(t: torch.Tensor, sizes: dict[int, int] = sizes) -> torch.Tensor:
            sizes[t.untyped_storage().data_ptr()] = t.untyped_storage().nbytes()
            return t

        leaf = x.clone().requires_grad_()
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
            found = pool._features(task.network, theta, leaf)
        found.square().sum().backward()  # type: ignore[no-untyped-call]
        assert leaf.grad is not None
        kept.append((sum(sizes.values()), found.detach(), leaf.grad))
    (whole, found, slope), (parts, same, again) = kept
    assert torch.allclose(found, same, atol=1e-6)
    assert torch.allclose(slope, again, atol=1e-5)
    assert parts < whole / 4
