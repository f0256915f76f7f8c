from functools import partial

import pytest
import torch
from torch import nn

import attar
from attar.condense.contract import NoState, Task
from attar.condense.dd import DD, take
from attar.condense.driver import Condensation
from attar.condense.generator import Teacher
from attar.condense.generator import generator as build
from attar.condense.gtn import GTN
from attar.condense.source import Pixels
from attar.condense.trajectory import train_through
from attar.core.errors import AttarError
from attar.data import Data
from attar.nets import network
from attar.nets.objective import Objective
from attar.nets.weightnorm import LENGTH
from tests.known import gaussian_task, gaussians, generator, images

DATA = gaussians(16)
SMALL = {"batch": 16, "latent": 4, "width": 8}


def test_with_fixed_inputs_and_a_linear_generator_it_is_dd_on_its_outputs() -> None:
    task = gaussian_task(network="mlp-d1w8")
    method = GTN(net_momentum=1e-9, step_size=0.1, batch=20, latent=4)
    source = method.source(task.data.sample_per_class(2, generator()), generator(1))
    assert isinstance(source, Teacher)
    source.network = nn.Sequential(nn.Linear(4 + 3, 6))
    made = source()
    ours = method.loss(made, NoState(), task, generator(2)).value
    pixels = Pixels(attar.Data(made.x.detach(), made.y, spec=made.spec), scalars={"rates": [0.1] * 2})
    syn = pixels()
    theirs = DD(epochs=1, inits=1, batch=20).loss(syn, NoState(), task, generator(2)).value
    assert torch.allclose(ours, theirs, rtol=1e-5)
    start = task.network.init(generator(2))
    looks = [partial(take, part) for part in torch.arange(6).tensor_split(2)]
    reached = train_through(Objective(task.network), start, syn, torch.full((2,), 0.1), looks)
    (by_dd,) = torch.autograd.grad(reached.sum(), pixels.x)
    moved = train_through(
        Objective(task.network), start, made, made.scalars["rates"], looks, made.scalars["net_momentum"]
    )
    (weight,) = torch.autograd.grad(moved.sum(), source.network[0].weight)
    inputs = torch.cat([source.z, torch.eye(3)[source.y]], 1).detach()
    assert torch.allclose(weight, by_dd.T @ inputs, atol=1e-5)  # the chain rule through the linear generator


@pytest.mark.parametrize("curriculum", ["noise", "all-shuffled", "shuffled-batches", "full"])
def test_every_curriculum_learns_the_generator_and_keeps_it(curriculum: str, tmp_path: object) -> None:
    made = attar.reduce(
        DATA, "gtn", per_class=2, network="linear", options={**SMALL, "curriculum": curriculum}, descent={"steps": 3}
    )
    assert made.data.y.tolist() == [0, 1, 2, 0, 1, 2]
    assert {"z", "y", "log_rate"} <= set(made.extra)
    assert made.recipe.sampler == "unrolled"
    assert made.recipe.sampler_options["net_momentum"] != 0.5
    path = tmp_path / "coreset.safetensors"
    made.save(path)
    again = attar.Coreset.load(path)
    assert all(torch.equal(again.extra[name], tensor) for name, tensor in made.extra.items())


def test_noise_is_new_every_step_and_the_same_after_a_resume() -> None:
    source = GTN(curriculum="noise", latent=4).source(DATA.sample_per_class(1, generator()), generator(1))
    first = source().x.detach().clone()
    source.renew(5)
    fifth = source().x.detach().clone()
    assert not torch.equal(first, fifth)
    source.renew(6)
    source.renew(5)
    assert torch.equal(source().x, fifth)


def test_images_lie_between_black_and_white() -> None:
    data = images(8)
    made = GTN(**SMALL).source(data.sample_per_class(2, generator()), generator())()  # type: ignore[arg-type]
    pixels = data.spec.stored(made.x.detach())
    assert made.x.shape[1:] == data.shape
    assert float(pixels.min()) >= -1e-5
    assert float(pixels.max()) <= 1 + 1e-5


def test_weight_normalisation_splits_length_and_direction() -> None:
    plain, normalised = (build(5, torch.Size([6]), 8, flag, images=False) for flag in (False, True))
    assert len(list(normalised.parameters())) == len(list(plain.parameters())) + 2


def test_generator_and_learner_may_both_have_normalised_weights() -> None:
    data, options = images(8), {**SMALL, "weight_norm": True}
    made, plain = (
        attar.reduce(data, "gtn", per_class=1, network=name, options=options, descent={"steps": 2})
        for name in ("convnet-d2w4-weightnorm", "convnet-d2w4")
    )
    assert any(LENGTH in name for name in made.extra)
    assert made.recipe.network == "convnet-d2w4-weightnorm"
    assert not torch.equal(made.data.x, plain.data.x)  # the learner's steps are others
    assert 0 <= attar.evaluate(attar.infer(made, draws=1), data).accuracy <= 1


TEXTS = attar.load(([f"a {word} film" for _ in range(20) for word in ("good", "bad")], ["yes", "no"] * 20)).train


@pytest.mark.parametrize(
    ("data", "shape", "words"),
    [
        (
            DATA,
            (7,),
            r"shape \(7,\), but those of gaussians have shape \(6,\): make its forward pass return that shape",
        ),
        (TEXTS, (3, 50), r"shape \(3, 50\), but those of .* have shape \(3, 64\)"),
        (TEXTS, (2, 64), r"shape \(2, 64\), but those of .* have shape \(3, 64\)"),
    ],
)
def test_a_generator_of_other_examples_than_the_data_has_is_refused(
    data: Data, shape: tuple[int, ...], words: str
) -> None:
    method, task = GTN(latent=4), Task(data, network(None, data.spec), data.classes)
    source = method.source(data.sample_per_class(1, generator()), generator(1))
    assert isinstance(source, Teacher)
    source.network = build(4 + data.classes, torch.Size(shape), 8, True, images=False)
    with pytest.raises(AttarError, match=words):
        Condensation(method, task, source, method.descent, generator())


def test_images_whose_sides_four_does_not_divide_are_refused() -> None:
    with pytest.raises(AttarError, match="sides 4 divides"):
        build(5, torch.Size([1, 6, 6]), 8, True, images=True)
