"""The jobs of the benchmark ``regression``: a process that does one of them for every line of its input, a name.

It is run as a file, with the path of either checkout, so it may only use what both have.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from itertools import chain, count

import torch
from safetensors.torch import load_file
from torch import Generator

import attar
from attar.bayes.vbpc import VBPC
from attar.condense.contract import Task
from attar.condense.source import Pixels
from attar.data import Data
from attar.engine import keep_freed_memory
from attar.select.facility import FacilityLocation, Table
from attar.select.greedy import lazy
from benchmarks import chains, condense_step, pseudo_coreset_step, selection, training

Job = Callable[[], object]


def train(images: Data) -> Job:
    """One training step."""
    start = attar.network("convnet-d3w128", (1, 28, 28), 10).init(Generator().manual_seed(0))
    data = images[: training.BATCH * training.STEPS]
    steps = chain.from_iterable(training.engine_steps(data.x, data.y, start) for _ in count())
    return lambda: next(steps)


def match(images: Data, method: str, net_steps: int) -> Job:
    """Network steps on the synthetic images, and one match of all classes."""
    start = attar.network(condense_step.NETWORK, condense_step.SHAPE, 10).init(Generator().manual_seed(2))
    syn = images.sample_per_class(condense_step.PER_CLASS, Generator().manual_seed(1)).x
    once = condense_step.ours(method, start, net_steps)
    return lambda: once(syn, images, Generator().manual_seed(0))


def contrast(images: Data, k: int) -> Job:
    """One step of bpc-cd."""
    network = attar.network(pseudo_coreset_step.NETWORK, (1, 28, 28), 10)
    syn, plus = _synthetic(images), network.init(Generator().manual_seed(0))[None]
    return lambda: pseudo_coreset_step._free(network, syn, plus, k, Generator().manual_seed(0)).backward()


def variational(images: Data) -> Job:
    """One step of vbpc."""
    gen = Generator().manual_seed(0)
    task = Task(images, attar.network(pseudo_coreset_step.NETWORK, (1, 28, 28), 10), 10)
    source = Pixels(_synthetic(images), labels="targets", scalars={"scale": 10.0})
    method = VBPC(batch=pseudo_coreset_step.REAL)
    state = method.init(task, gen)
    return lambda: method.loss(source(), state, task, gen).value.backward()


def locate(images: Data) -> Job:
    """Picks by facility location from a table of distances."""
    x = torch.randn(selection.N, selection.SIZE, generator=Generator().manual_seed(0))
    table = Table(torch.cdist(x, x))
    return lambda: lazy(FacilityLocation(table), selection.PICKS)


def walk(images: Data, name: str) -> Job:
    """Sixteen chains together."""
    gen = Generator().manual_seed(0)
    digits = attar.load("digits").train.map(lambda x: x.flatten(1)).sample_per_class(10, gen)
    return chains._ways(name, digits, gen)["together"]


#: By the names in the result.
JOBS: dict[str, Callable[[Data], Job]] = {
    "training, convnet-d3w128": train,
    "condense_step, dc, 10 network steps": lambda images: match(images, "dc", 10),
    "condense_step, dsa, 10 network steps": lambda images: match(images, "dsa", 10),
    "pseudo_coreset_step, vbpc": variational,
    "pseudo_coreset_step, bpc-cd, k = 10": lambda images: contrast(images, 10),
    "selection, facility location": locate,
    "chains, mlp-d2w32": lambda images: walk(images, "mlp-d2w32"),
    "chains, mlp-d2w128": lambda images: walk(images, "mlp-d2w128"),
}


def _synthetic(images: Data) -> Data:
    syn = images.sample_per_class(pseudo_coreset_step.IMAGES // 10, Generator().manual_seed(1))
    return Data(syn.x.clone().requires_grad_(), syn.y)


def main(images: str) -> None:
    """Print the processor seconds of each job; its first call includes one-time set-up and does not count."""
    torch.set_num_threads(1)
    keep_freed_memory()
    tensors, ready = load_file(images), dict[str, Job]()
    for line in sys.stdin:
        name = line.strip()
        if name not in ready:
            ready[name] = JOBS[name](Data(tensors["x"], tensors["y"]))
            ready[name]()
        start = time.process_time()
        ready[name]()
        sys.stdout.write(f"{time.process_time() - start}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1])
