"""Five changes that a newcomer would make, each in the room that the tree suggests."""

from __future__ import annotations

import re
from inspect import isfunction, signature
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Generator, Tensor, nn

import attar
from attar import Coreset, Split, Training
from attar.condense.contract import Task
from attar.condense.dm import DM
from attar.condense.driver import Condensation
from attar.condense.source import Source, Synthetic
from attar.core.errors import AttarError
from attar.core.method import Descent
from attar.data import Data, Mapped, Spec, Tokens
from tests.known import Largest, gaussians, generator, images

SHORT = Training(steps=100, batch=32, lr=0.1)
TOPICS = {
    "sports": ("match", "goal", "team", "score", "coach"),
    "cooking": ("bake", "sauce", "oven", "flour", "spice"),
    "space": ("orbit", "rocket", "moon", "probe", "launch"),
}


def texts(each: int = 30) -> tuple[list[str], list[str]]:
    """Sentences of words that belong to one topic, between words that belong to none."""
    gen, found, labels = generator(), [], []
    for topic, words in TOPICS.items():
        for _ in range(each):
            picks = torch.randint(len(words), (3,), generator=gen).tolist()
            found.append("the {} and a {} with the {}".format(*(words[k] for k in picks)))
            labels.append(topic)
    return found, labels


@pytest.fixture(scope="module")
def articles() -> Split:
    return attar.load(texts())


@pytest.mark.parametrize("method", ["uniform", "herding", "dm"])
def test_texts_go_through_the_whole_pipeline(method: str, articles: Split, tmp_path: Path) -> None:
    learns = {"descent": {"steps": 20, "lr": 1.0}} if method == "dm" else {}
    coreset = attar.reduce(articles, method, per_class=4, training=SHORT, **learns)  # type: ignore[arg-type]
    posterior = attar.infer(coreset, draws=2)
    assert posterior.network.name.startswith("embedding-bag")
    assert attar.evaluate(posterior, articles).accuracy > 0.8
    coreset.save(tmp_path / "few.safetensors")
    loaded = Coreset.load(tmp_path / "few.safetensors")
    assert isinstance(loaded.data.spec.element, Tokens)
    assert loaded.texts() == coreset.texts()
    if method == "dm":
        assert coreset.data.x.is_floating_point()
        assert coreset.rows is None
    else:
        given, _ = texts()
        assert coreset.rows is not None
        assert coreset.texts() == [given[int(row)] for row in coreset.rows]
    page = attar.report(loaded, tmp_path / "page.html", data=articles, evaluations=1, draws=1).read_text()
    row = "" if coreset.rows is None else ' <span class="aside">[^<]+</span>'
    assert re.search(f"<li>{re.escape(coreset.texts()[0])}{row}</li>", page)


def test_methods_are_compared_on_texts(articles: Split, tmp_path: Path) -> None:
    spec = attar.StudySpec(
        methods=["dm"], per_class=[2], seeds=[0], draws=1, training=Training(steps=20), descent={"dm": {"steps": 2}},
        converged=False,
    )  # fmt: skip
    study = attar.compare(spec, data=articles, folder=tmp_path / "study", device="cpu")
    assert {run.method for run in study.runs} == {"uniform", "herding", "dm", "full"}


class Generated(Source):
    """Images that a small network makes from fixed noise, one row of noise an example."""

    noise: Tensor

    def __init__(self, start: Data, gen: Generator) -> None:
        super().__init__()
        self.register_buffer("noise", torch.randn(len(start), 8, generator=gen))
        self.register_buffer("labels", start.hard)
        self.spec = start.spec
        self.weight = nn.Parameter(torch.randn(8, start.x[0].numel(), generator=gen) / 8)
        self.bias = nn.Parameter(start.x.flatten(1).clone())

    def forward(self) -> Synthetic:
        x = (self.noise @ self.weight + self.bias).reshape(-1, *self.spec.element.shape)
        return Synthetic(x, self.labels, spec=self.spec)

    def groups(self) -> dict[str, list[nn.Parameter]]:
        return {"examples": [self.bias], "generator": [self.weight]}


def test_a_generator_network_is_learnt_by_distribution_matching() -> None:
    data, gen = images(8), generator()
    network = attar.network("convnet-d1w8", data.spec)
    source = Generated(data.sample_per_class(2, gen), gen)
    before = source.weight.detach().clone()
    run = Condensation(DM(strategy="none"), Task(data, network, 3), source, Descent(steps=30, lr=0.05), gen)
    losses = [step.loss for step in run]
    assert sum(losses[-5:]) < 0.7 * sum(losses[:5])
    assert not torch.equal(source.weight, before)
    assert run.examples.shape == data.shape


def halves() -> tuple[Data, Data]:
    """The first two classes, and the last two, each numbered from 0 as if they had come apart."""
    data = gaussians(20, classes=4)
    names = data.spec.target.names
    first, second = data[data.y < 2], data[data.y >= 2]
    return (
        Data(first.x, first.y, spec=Spec.of(data.shape, names[:2])),
        Data(second.x, second.y - 2, spec=Spec.of(data.shape, names[2:])),
    )


def test_coresets_of_different_classes_merge_and_a_larger_network_learns_from_them() -> None:
    first, second = (attar.reduce(part, "herding", per_class=3, network="mlp", training=SHORT) for part in halves())
    both = first.merge(second)
    assert both.data.spec.target.names == gaussians(1, classes=4).spec.target.names
    assert both.data.y.tolist() == [0] * 3 + [1] * 3 + [2] * 3 + [3] * 3
    posterior = attar.infer(both, draws=2)
    assert (posterior.network.classes, attar.infer(first).network.classes) == (4, 2)
    assert attar.evaluate(posterior, gaussians(20, classes=4, seed=1)).accuracy > 0.9


def test_merged_coresets_of_one_file_name_its_rows(tmp_path: Path) -> None:
    for name in ("t.csv", "other.csv"):
        (tmp_path / name).write_text("a,b,label\n" + "".join(f"{k % 9},{k % 7},{'xy'[k % 2]}\n" for k in range(60)))
    first, second, other = (
        attar.reduce(tmp_path / name, "uniform", per_class=2, seed=seed)
        for name, seed in (("t.csv", 0), ("t.csv", 1), ("other.csv", 1))
    )
    both = first.merge(second)
    assert both.rows == [*first.rows, *second.rows]
    assert (both.recipe.origin, both.recipe.fingerprint) == (first.recipe.origin, first.recipe.fingerprint)
    split = attar.load(tmp_path / "t.csv")
    assert torch.equal(split.train.take(both.indices).x, both.data.x)
    assert (first.merge(other).rows, first.merge(other).recipe.origin) == (None, None)


def test_coresets_that_do_not_go_together_are_refused() -> None:
    pictures = attar.reduce(images(4), "uniform", per_class=1)
    vectors = attar.reduce(halves()[0], "uniform", per_class=1)
    with pytest.raises(AttarError, match="cannot be merged"):
        pictures.merge(vectors)
    regression = attar.reduce(halves()[1], "label-solve", per_class=1, network="mlp")
    with pytest.raises(AttarError, match="different samplers"):
        vectors.merge(regression)


def mapped(folder: Path, n: int = 3000, size: int = 200) -> Mapped:
    gen, y = np.random.default_rng(0), np.arange(n) % 3
    np.save(folder / "x.npy", (gen.normal(size=(n, size)) + 3 * np.eye(3, size)[y]).astype(np.float32))
    return Mapped(folder / "x.npy", y)


@pytest.mark.parametrize("method", ["uniform", "herding", "craig"])
def test_a_data_set_in_a_file_is_selected_from_without_being_in_memory_whole(method: str, tmp_path: Path) -> None:
    data = mapped(tmp_path)
    short = Training(steps=20, batch=64)
    with Largest() as seen:
        picked = attar.select(data, method, per_class=3, network="mlp-d1w16", training=short, part=600)
    assert seen.numbers < len(data) * 200 / 2
    assert len(picked.indices) == 9
    assert picked.rows == picked.indices.tolist()
    assert data.labels[picked.indices].bincount().tolist() == [3, 3, 3]


#: What only reads, hashes, lists or writes.
IDLE = {"board", "dedup", "load", "methods", "network", "push_to_hub"}


def test_every_function_that_computes_takes_a_device(device: str) -> None:
    public = {name: getattr(attar, name) for name in attar.__all__}
    assert {n for n, f in public.items() if isfunction(f) and "device" not in signature(f).parameters} == IDLE
    assert "device" in signature(attar.CoresetClassifier).parameters
    data, kind = gaussians(8), torch.device(device).type
    coreset = attar.reduce(data, "dm", per_class=1, network="mlp", descent={"steps": 2}, device=device)
    posterior = attar.infer(coreset, draws=1, device=device)
    assert (coreset.data.x.device.type, posterior.theta.device.type) == (kind, kind)
    assert attar.evaluate(posterior, data, device=device).accuracy >= 0
    assert len(attar.select(data, "herding", size=3, network="mlp", training=SHORT, device=device).indices) == 3


@pytest.mark.parametrize("name", ["reduce", "infer", "select", "experts", "evaluate", "recommend", "fit"])
def test_a_device_that_is_not_there_is_refused_with_the_remedy(name: str) -> None:
    data = gaussians(4)
    calls = {
        "reduce": lambda device: attar.reduce(data, "uniform", per_class=1, device=device),
        "infer": lambda device: attar.infer(data, device=device),
        "select": lambda device: attar.select(data, "uniform", size=1, device=device),
        "experts": lambda device: attar.experts(data, device=device),
        "recommend": lambda device: attar.recommend(data, per_class=1, device=device),
        "fit": lambda device: attar.CoresetClassifier(device=device).fit(data.x.numpy(), data.y.numpy()),
        "evaluate": lambda device: attar.evaluate(attar.infer(data, draws=1, training=SHORT), data, device=device),
    }
    for device in ("cuda:7", "meta", "toaster"):
        with pytest.raises(AttarError, match=r"No device .* here"):
            calls[name](device)


@pytest.mark.parametrize("which", ["linear", "mlp", "convnet-d2w8", "lenet", "resnet10"])
def test_no_network_forgets_the_device_of_its_arguments(which: str) -> None:
    network = attar.network(which, (1, 16, 16), 3)
    theta, x = torch.empty(network.size, device="meta"), torch.empty(4, 1, 16, 16, device="meta")
    assert network(theta, x).device.type == "meta"
    assert network.features(theta, x).device.type == "meta"
    assert network.head(theta)[0].device.type == "meta"
