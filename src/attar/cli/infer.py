"""`attar infer`: infer a posterior from a coreset."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from attar.cli.arguments import (
    DRAWS,
    Accelerated,
    CoresetPath,
    Device,
    Draws,
    Force,
    OwnNetwork,
    OwnSampler,
    Seed,
    require_own,
)
from attar.cli.console import out, warnings_shown, working
from attar.cli.options import Chosen
from attar.core import registry
from attar.core.device import device_of
from attar.core.lock import claimed
from attar.coreset import Coreset
from attar.engine.pool import LOCAL, Engine
from attar.infer import infer as infer_posterior
from attar.infer.diagnose import in_words
from attar.nets.train import Training

Output = Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="Posterior file to write.")]


def infer(
    coreset: CoresetPath,
    output: Output = Path("posterior.safetensors"),
    sampler: OwnSampler = None,
    draws: Draws = DRAWS,
    seed: Seed = 0,
    network: OwnNetwork = None,
    force: Force = False,
    engine: Engine = LOCAL,
    device: Device = "cpu",
    accelerate: Accelerated = "none",
    *,
    chosen: Chosen,
) -> None:
    """Infer a posterior over network parameters from a coreset.

    Training and chains start from random networks of the prior, never from networks trained on the full data:

        attar infer d.safetensors -o posterior.safetensors
        attar infer d.safetensors --sampler sghmc --draws 20

    MCMC samplers (sghmc, langevin, hmc) draw from a tempered posterior with T = 0.001, unless --temperature
    says otherwise, and the R-hat of their chains is printed.

    --workers shares out trainings and chains of networks that are large enough, and gives the same draws.

    By default, sampler and training are those that the coreset recommends. Name a sampler to see its options too:
    `attar infer --sampler sghmc --help`.
    """
    with warnings_shown():
        loaded = Coreset.load(coreset, force).to(device_of(device))
    require_own(loaded, sampler, force)
    training = registry.make(Training, asdict(loaded.training) | chosen.training, "training")
    about = f"{sampler or loaded.recipe.sampler}: {draws} draws from {len(loaded)} examples"
    with claimed(output):
        with working(about), warnings_shown():
            posterior = infer_posterior(
                loaded,
                sampler,
                draws=draws,
                seed=seed,
                network=network,
                training=training,
                options=chosen.options,
                accelerate=accelerate,
                engine=engine,
            )
        posterior.save(output)
    kept, net = len(posterior.theta), posterior.network
    made = f"{kept} draws of {net.name} ({net.size:,} parameters) by {posterior.notes['sampler']}"
    if chains := in_words(posterior.notes):
        made += f" ({chains})"
    out.print(f"{made} → {output}", soft_wrap=True)
