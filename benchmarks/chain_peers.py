"""Question: how much longer do transitions of chains take than in blackjax, on a small network with 4 chains?

The posterior of a small network on 100 digits, all examples in every gradient, by sghmc, langevin and hmc with 20
leapfrog steps. blackjax (JAX, compiled before) has the same network and as many gradients; it is not a dependency: it
runs in the Python interpreter that the environment variable ``RIVALS`` names. Its sghmc takes several steps with a
gradient each from one fresh momentum: ten, its default, count as ten transitions. A single one would only move by the
fresh momentum, and the compiler would leave the gradient out. Short measurements alternate, in one thread, and the
fastest processor seconds of each side count.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch

import attar
from attar.core import registry
from attar.core.errors import AttarError
from attar.core.files import write_json
from attar.data import Data
from attar.engine import keep_freed_memory
from attar.infer.chain import Chain, Walk
from attar.infer.potential import NetworkPotential, Prior, Whitened
from attar.study.results import machine, versions
from benchmarks import RESULTS

NETWORK, LAYERS, CHAINS, ROUNDS = "mlp-d2w32", (64, 32, 32, 10), 4, 60
TRANSITIONS = {"sghmc": 100, "langevin": 100, "hmc": 5}
LEAPS = 20
INNER = 10  # steps of blackjax's sghmc per fresh momentum
RIVAL = """
import json, sys, time
import blackjax, jax, jax.numpy as jnp, numpy as np
name, file, transitions, leaps, inner, chains = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:7])
layers = json.loads(sys.argv[7])
held = np.load(file)
x, y = jnp.asarray(held["x"]), jnp.asarray(held["y"])
shapes = [(a, b) for a, b in zip(layers, layers[1:])]

def logits(theta):
    at, out = 0, x
    for number, (a, b) in enumerate(shapes):
        weight, bias = theta[at:at + a * b].reshape(a, b), theta[at + a * b:at + a * b + b]
        at, out = at + a * b + b, out @ weight + bias
        out = jax.nn.relu(out) if number + 1 < len(shapes) else out
    return out

def density(theta):
    chosen = jnp.take_along_axis(jax.nn.log_softmax(logits(theta)), y[:, None], 1)
    return chosen.sum() - 0.5 * (theta ** 2).sum()

p = sum(a * b + b for a, b in shapes)
slope = lambda theta, batch: jax.grad(density)(theta)
if name == "hmc":
    sampler = blackjax.hmc(density, 1e-4, jnp.ones(p), leaps)
    step, start = lambda key, state: sampler.step(key, state)[0], sampler.init
else:
    sampler = blackjax.sgld(slope) if name == "langevin" else blackjax.sghmc(slope, num_integration_steps=inner)
    transitions //= 1 if name == "langevin" else inner
    step, start = lambda key, state: sampler.step(key, state, None, 1e-6), lambda theta: theta

def walk(key, theta):
    return jax.lax.scan(lambda s, k: (step(k, s), None), start(theta), jax.random.split(key, transitions))[0]

run = jax.jit(jax.vmap(walk))
keys, thetas = jax.random.split(jax.random.key(0), chains), 0.1 * jax.random.normal(jax.random.key(1), (chains, p))
jax.block_until_ready(run(keys, thetas))
print(p, flush=True)
for _ in sys.stdin:
    begin = time.process_time()
    jax.block_until_ready(run(keys, thetas))
    print(time.process_time() - begin, flush=True)
"""
ONE = {"OMP_NUM_THREADS": "1", "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"}


def main(rounds: int = ROUNDS) -> list[Path]:
    """Measure and write one JSON file."""
    rivals = os.environ.get("RIVALS")
    if not rivals:
        raise AttarError("RIVALS must name a Python interpreter with blackjax.")
    torch.set_num_threads(1)
    keep_freed_memory()
    data = attar.load("digits").train.map(lambda x: x.flatten(1)).sample_per_class(10, torch.Generator().manual_seed(0))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "digits.npz"
        np.savez(file, x=data.x.numpy(), y=data.y.numpy())
        found = {name: _compare(name, [rivals, "-c", RIVAL, name, str(file)], data, rounds) for name in TRANSITIONS}
    path = RESULTS / "chain_peers" / "chain_peers.json"
    write_json(
        path,
        {
            "command": "RIVALS=<python with blackjax> python -m benchmarks chain_peers",
            "setting": {"network": NETWORK, "chains": CHAINS, "examples": len(data), "transitions": TRANSITIONS},
            "times_longer_than_blackjax": {
                name: min(both["attar"]) / min(both["blackjax"]) for name, both in found.items()
            },
            "cpu_seconds": found,
            "versions": versions(),
            "machine": machine(),
        },
    )
    return [path]


def _compare(name: str, rival: list[str], data: Data, rounds: int) -> dict[str, list[float]]:
    """Processor seconds of both sides in every round."""
    network = attar.network(NETWORK, data.shape, data.classes)
    prior = Prior(network)
    sampler: Chain = registry.build(name, {"leaps": LEAPS} if name == "hmc" else {}, "infer")
    gen = torch.Generator().manual_seed(0)
    start = torch.randn(CHAINS, network.size, generator=gen)
    walk = sampler.transitions(Whitened(NetworkPotential(network, data, prior), prior), start, gen)
    next(walk)  # the first includes one-time set-up
    command = [*rival, *map(str, (TRANSITIONS[name], LEAPS, INNER, CHAINS)), json.dumps(LAYERS)]
    found: dict[str, list[float]] = {"attar": [], "blackjax": []}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=os.environ | ONE, stdin=pipe, stdout=pipe, text=True, bufsize=1) as theirs:
        assert theirs.stdin is not None
        assert theirs.stdout is not None
        if int(theirs.stdout.readline()) != network.size:
            raise AttarError(f"The network of blackjax does not have the {network.size} parameters of {NETWORK}.")
        for _ in range(rounds):
            found["attar"].append(_seconds(walk, TRANSITIONS[name]))
            theirs.stdin.write("again\n")
            found["blackjax"].append(float(theirs.stdout.readline()))
        theirs.stdin.close()
    return found


def _seconds(walk: Iterator[Walk], number: int) -> float:
    """Processor seconds of so many transitions of all chains."""
    start = time.process_time()
    for _ in range(number):
        next(walk)
    return time.process_time() - start
