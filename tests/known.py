"""Small sets and tasks whose answers are known."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from hashlib import blake2b
from typing import Any

import pytest
import torch
from torch import Generator, Tensor
from torch.nn.functional import cross_entropy
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

import attar
from attar.condense.contract import Task
from attar.condense.driver import Step
from attar.data import Data, Spec, Split
from attar.data.transform import Standard
from attar.nets import Network
from attar.nets import network as build_network
from attar.nets.train import Trainer
from tests.apart import PIPE, ROOT, Process, environment

HANG = 600  #: seconds after which whatever a test waits for will never come
# A shell's background jobs ignore Ctrl-C and hand that on: code must hear it wherever tests run.
HEARD = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"


def code() -> str:
    """A hash of the library's code: results of two versions are not to be mixed, and workers read it anew."""
    total = blake2b(digest_size=8)
    for path in sorted((ROOT / "src" / "attar").rglob("*.py")):
        total.update(path.read_bytes())
    return total.hexdigest()


def generator(seed: int = 0) -> Generator:
    return torch.Generator().manual_seed(seed)


def gaussians(per_class: int = 16, classes: int = 3, size: int = 6, seed: int = 0) -> Data:
    """Feature vectors whose classes lie 4 apart with deviation one half, in mixed order."""
    gen = generator(seed)
    y = torch.arange(classes).repeat(per_class)
    x = 4 * torch.eye(classes, size)[y] + 0.5 * torch.randn(len(y), size, generator=gen)
    return Data(x, y, spec=Spec.of((size,), [f"class {c}" for c in range(classes)], name="gaussians"))


def images(per_class: int = 8, classes: int = 3, channels: int = 1, seed: int = 0) -> Data:
    """Scaled 8x8 images: one bright row a class, and noise."""
    gen = generator(seed)
    y = torch.arange(classes).repeat(per_class)
    pixels = torch.rand(len(y), channels, 8, 8, generator=gen) / 4
    pixels[torch.arange(len(y)), :, 2 * y] += 0.7
    scaling = Standard.fit(pixels)
    return Data(
        scaling.apply(pixels), y, spec=Spec.of((channels, 8, 8), [f"row {c}" for c in range(classes)], scaling, "rows")
    )


def spec_header(**changes: object) -> str:
    """What a file of the images above says of its spec, with changes."""
    image = {"kind": "image", "shape": [1, 8, 8]}
    return json.dumps({"name": "a", "classes": ["a", "b", "c"], "transform": "standard", "element": image} | changes)


def gaussian_task(per_class: int = 16, classes: int = 3, network: str = "linear", size: int = 6) -> Task:
    data = gaussians(per_class, classes, size)
    return Task(data, build_network(network, data.shape, classes), classes)


def slope(network: Network, theta: Tensor, data: Data) -> Tensor:
    """The gradient of the mean cross-entropy in theta, as ``torch.func`` finds it."""
    found: Tensor = torch.func.grad(lambda at: cross_entropy(network(at, data.x), data.y))(theta)
    return found


class Largest(TorchDispatchMode):
    """The most numbers that any tensor made inside has."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.numbers = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        self.numbers = max([self.numbers, *(leaf.numel() for leaf in tree_leaves(out) if isinstance(leaf, Tensor))])
        return out


@cache
def digits() -> Split:
    return attar.load("digits")


class Stop(Exception):
    """Raised by ``stop_at``, as a crash would be."""


def stop_at(number: int, steps: Iterable[Step]) -> Iterator[Step]:
    """An observer that ends a run while its step ``number`` is looked at."""
    for step in steps:
        if step.number == number:
            raise Stop
        yield step


def python(code: str, *arguments: object, stdin: int | None = None) -> Process:
    """Start code in a Python of its own, with one thread and the repository on its path."""
    return Process(HEARD + code, [str(argument) for argument in arguments], stdin)


def new_python(code: str, *arguments: object) -> subprocess.Popen[str]:
    """The same where it matters that nothing has been imported, read or taken in memory before."""
    command = [sys.executable, "-c", HEARD + code, *map(str, arguments)]
    return subprocess.Popen(command, env=environment(), cwd=ROOT, text=True, stdout=PIPE, stderr=PIPE)


def wait_until(happened: Callable[[], object]) -> None:
    """Return as soon as this is true, however slow the machine is; fail if it never will be."""
    end = time.monotonic() + HANG
    while not happened():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.005)


def damaged(whole: bytes, seed: int = 0) -> Iterator[bytes]:
    """A safetensors file with one bit flipped: once at every byte of its header, and at 64 places of its body."""
    gen = generator(seed)
    body = 8 + int.from_bytes(whole[:8], "little")
    places = [*range(body), *(body + torch.randint(len(whole) - body, (64,), generator=gen)).tolist()]
    for place in places:
        broken = bytearray(whole)
        broken[place] ^= 1 << int(torch.randint(8, (), generator=gen))
        yield bytes(broken)


class Clock:
    """A clock of forecasts that stands still but for ``tick``."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seconds = 0.0
        monkeypatch.setattr("attar.core.forecast.now", lambda: (self.seconds, self.seconds))

    def tick(self, seconds: float) -> None:
        self.seconds += seconds

    def train(self, seconds: float, monkeypatch: pytest.MonkeyPatch) -> list[int]:
        """Let every step of a training take so long; returns a list that grows with the steps that are taken."""
        taken, step = list[int](), Trainer._step

        def slow(trainer: Trainer, gen: Generator, index: Tensor | None) -> Tensor:
            self.tick(seconds)
            taken.append(1)
            return step(trainer, gen, index)

        monkeypatch.setattr(Trainer, "_step", slow)
        return taken
