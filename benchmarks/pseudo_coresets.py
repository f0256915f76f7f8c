"""Claim: on Fashion-MNIST, Bayesian pseudo-coresets beat as many real images when inference starts from the prior.

All rows share one small network and one budget of steps; every choice was made on validation images, and the test set
is used once per run. Experts are trained first, and their cost is reported too. An interrupted benchmark resumes.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from attar.core.cost import Cost
from attar.core.files import write_json
from attar.experts import experts
from attar.study import StudySpec
from benchmarks import RESULTS, carry_out, publish

NAME = "pseudo_coresets"
SPEC = StudySpec(data="fashion-mnist", network="convnet-d3w32", seeds=range(2), draws=5)
METHODS = {1: ["vbpc", "bpc-cd", "bpc-fkl", "bpc-rkl", "bpc-w"], 10: ["vbpc", "bpc-cd"]}


def main() -> list[Path]:
    """Train the experts, run the study; write its JSON file, table, chart and, if it is small enough, page."""
    for size, methods in METHODS.items():
        study = carry_out(replace(SPEC, methods=methods, per_class=(size,)), NAME)
    store = experts(SPEC.load_data(), str(SPEC.network))  # which exist, because the study used them
    total = sum((expert.cost for expert in store.manifest.experts), Cost())
    spent = {"wall": total.wall, "cpu": total.cpu, "memory": total.memory}
    about = {"command": store.manifest.command, "trajectories": len(store), **spent}
    write_json(RESULTS / NAME / "experts.json", about)
    return publish(study, NAME)
