"""The problems of the board, and the methods whose coresets are judged on each of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from attar.board import Problem
from attar.board.problem import Loading, problem_of
from attar.data import Split
from attar.nets.train import Training
from attar.study.compared import RANDOM

SEEDS, SIZES = range(5), (1, 10)


@dataclass(frozen=True)
class Entry:
    """A problem, and the methods whose coresets are judged on it."""

    name: str
    about: str
    data: str
    network: str
    training: Training
    draws: int
    methods: Mapping[str, Mapping[str, Any]]  #: their optimiser settings
    scaling: str = "standard"
    vectors: Literal["learnt"] | None = None  #: word vectors of texts
    epochs: int = 30  #: of the reference
    reference: str | None = None  #: the problem whose reference is used, if not its own
    seeds: Sequence[int] = SEEDS
    per_class: tuple[int, ...] = SIZES
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    curves: bool = False  #: whether learning curves of coresets are kept
    published: bool = False  #: whether the sets of RFAD are judged on it, too
    sized: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)  #: optimiser settings that differ by size
    sized_options: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)  #: options that differ by size

    def problem(self, split: Split) -> Problem:
        """The problem on its loaded data."""
        problem = problem_of(
            self.name,
            self.about,
            split,
            self.data,
            per_class=list(self.per_class),
            network=self.network,
            training=self.training,
            draws=self.draws,
            loading=Loading(self.scaling, vectors=self.vectors),
        )
        return replace(problem, reference=self.reference)

    def settings(self, method: str, size: int) -> tuple[dict[str, Any], dict[str, Any]]:
        """Options and optimiser settings of a method at a size; a method that does not learn has neither by size."""
        options, descent = dict(self.options.get(method, {})), dict(self.methods[method])
        if descent:
            options |= self.sized_options.get(size, {})
            descent |= self.sized.get(size, {})
        return options, descent


_WHITENED = "CIFAR-10 after ZCA whitening"
_SELECTED: Mapping[str, Mapping[str, Any]] = {RANDOM: {}, "herding": {}, "k-center": {}}
ENTRIES = (
    Entry(
        "digits",
        "Ten handwritten digits of 8x8 pixels, which need no download.",
        "digits",
        "convnet-d2w16",
        Training(steps=100),
        2,
        {**_SELECTED, "dm": {"steps": 60}, "kip": {"steps": 60}, "vbpc": {"steps": 100}},
        options={"kip": {"batch": 256}, "vbpc": {"batch": 256}},
    ),
    Entry(
        "cifar10-zca",
        "CIFAR-10 after ZCA whitening, with a small network; methods that learn are not run on it here.",
        "cifar10",
        "convnet-d3w16",
        Training(steps=150),
        1,
        {RANDOM: {}},
        scaling="zca",
        epochs=2,
        published=True,
    ),
    *(
        Entry(
            name,
            f"{title}, with a small network and short runs of the methods that learn.",
            name,
            "convnet-d2w16",
            Training(steps=200),
            2,
            {**_SELECTED, "dm": {"steps": 60}, "kip": {"steps": 60}, "vbpc": {"steps": 150}},
            epochs=6,
            options={"kip": {"batch": 512}, "vbpc": {"batch": 512}},
        )
        for name, title in (("fashion-mnist", "Fashion-MNIST"), ("mnist", "MNIST"))
    ),
    *(
        Entry(
            name,
            f"{title}, with vectors learnt from the training texts, a small network and short runs.",
            name,
            "embedding-bag-d1w128",
            Training(steps=120, batch=64),
            2,
            {
                **_SELECTED,
                "k-means": {},
                "dm": {"steps": 150},
                "kip": {"steps": 200},
                "vbpc": {"steps": 200},
                "frepo": {"steps": 200},
            },
            vectors="learnt",
            options={"dm": {"batch": 32}, "kip": {"batch": 256}, "vbpc": {"batch": 128}, "frepo": {"batch": 128}},
        )
        for name, title in (("trec6", "Questions of TREC by type"), ("sst5", "Sentences of film reviews by sentiment"))
    ),
    *(
        Entry(
            f"{name}-wide",
            f"{title}, with a wide network and long runs of vbpc.",
            name,
            "convnet-d3w32x64x128",
            Training(),
            5,
            {"vbpc": {"steps": 4000}},
            per_class=sizes,
            options={"vbpc": {"batch": batch, "staggered": True}},
            sized={10: {"steps": 1500, "lr": 0.03}, 50: {"steps": 600, "lr": 0.03}},
            reference=name,
            seeds=range(3),
            curves=True,
        )
        for name, title, batch, sizes in (
            ("fashion-mnist", "Fashion-MNIST", 512, (1, 10, 50)),
            ("mnist", "MNIST", 256, (10, 50)),
        )
    ),
    *(
        Entry(
            f"{name}-{suffix}",
            f"{title}, with {number}narrow networks side by side under one last layer and long runs of vbpc.",
            name,
            network,
            Training(steps=100),
            5,
            {"vbpc": {"lr": 0.03, "label_lr": 0.01}},
            per_class=tuple(steps),
            options={"vbpc": {"batch": 128, "net_steps": 5, "staggered": True, **more}},
            sized={size: {"steps": count} for size, count in steps.items()},
            sized_options={50: {"batch": 512}},  # beside 500 learnt images, a larger real batch costs little
            scaling=scaling,
            reference=reference,
            seeds=range(3),
            curves=True,
        )
        for name, title, few, one, scaling, reference, more in (
            ("mnist", "MNIST", "convnet-d3w8x16x32b8", 6000, "standard", "mnist", {}),
            ("fashion-mnist", "Fashion-MNIST", "convnet-d3w8x16x32b8", 6000, "standard", "fashion-mnist", {}),
            ("cifar10", _WHITENED, "convnet-d3w16x32x64b8", 3000, "zca", "cifar10-zca", {"flips": True}),
        )
        for suffix, number, network, steps in (
            ("branches", "", few, {1: one}),
            ("branches-4", "four ", "convnet-d3w16x32x64b4", {10: 1500, 50: 400}),
        )
    ),
)
