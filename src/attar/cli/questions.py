"""The command that asks: evaluate."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from attar.assess import Scores
from attar.assess import evaluate as score
from attar.assess.questions import Assessment, Questions, assess, question
from attar.cli.arguments import (
    DATA_HELP,
    Attacks,
    Calibrate,
    Corruption,
    Draws,
    Fairness,
    FullDistance,
    Limit,
    NetworkName,
    Networks,
    OwnSampler,
    Privacy,
    Seeds,
    Strange,
    Target,
    numbers,
    read,
    words,
)
from attar.cli.console import err, out, summary
from attar.cli.options import Chosen
from attar.cli.origin import data_of
from attar.core import registry
from attar.core.files import read_tensors
from attar.coreset import Coreset
from attar.data import Spec, Split
from attar.data.split import Origin
from attar.infer import Draws as PosteriorDraws
from attar.infer import infer
from attar.infer.contract import FORMAT as POSTERIOR
from attar.nets.train import Training


def evaluate(
    path: Annotated[Path, typer.Argument(help="A coreset or a posterior file.", metavar="FILE")],
    data: Annotated[
        str | None, typer.Argument(help=DATA_HELP, metavar="[DATA]", show_default="the data that FILE was made from")
    ] = None,
    seeds: Seeds = "0,1,2",
    sampler: OwnSampler = None,
    draws: Draws = 5,
    network: NetworkName = None,
    target: Target = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="JSON file for all answers; `attar report` takes it.")
    ] = None,
    calibrate: Calibrate = False,
    distance: FullDistance = False,
    corruption: Corruption = False,
    attack: Attacks = "",
    networks: Networks = "",
    fairness: Fairness = False,
    privacy: Privacy = False,
    ood: Strange = "",
    limit: Limit = 1000,
    *,
    chosen: Chosen,
) -> None:
    """Score a coreset or a posterior on the test set of the data that it was made from, and ask it more if you like.

    For a coreset, one posterior is inferred for each seed, from the prior, with the coreset's own training schedule;
    questions are put to the posterior of the first seed.
    """
    saved = read_tensors(path)[1].get("format") == POSTERIOR
    subject = PosteriorDraws.load(path) if saved else Coreset.load(path)
    asked = Questions(calibrate, distance, corruption, words(attack), words(networks), fairness, privacy, limit)
    strange = {name: read(name).test for name in words(ood)}
    spec, origin = (subject.spec, None) if isinstance(subject, PosteriorDraws) else _made_from(subject)
    split = data_of(path, spec, origin, data, target, "DATA")
    with err.status("scores") as status:
        if isinstance(subject, PosteriorDraws):
            _say([score(subject, split.test)], split, subject)
            answers = question(subject, split, asked, name=path.stem, strange=strange, watch=status.update)
        else:
            training = registry.make(Training, asdict(subject.training) | chosen.training, "training")
            budget = {"network": network, "training": training, "options": chosen.options}
            posteriors = [infer(subject, sampler, draws=draws, seed=seed, **budget) for seed in numbers(seeds, "seeds")]
            _say([score(posterior, split.test) for posterior in posteriors], split, posteriors[0])
            answers = assess(
                subject, split, asked, posteriors[0], training=training, strange=strange, watch=status.update
            )
    show(answers)
    if output:
        answers.save(output)
        out.print(f"→ {output}")


def _made_from(coreset: Coreset) -> tuple[Spec, Origin | None]:
    return coreset.data.spec, coreset.recipe.origin


def show(answers: Assessment) -> None:
    """Print the answers, one line or table each."""
    if answers.calibrated:
        out.print(f"at temperature {answers.temperature:.2f}: {answers.calibrated}")
    if answers.distance:
        out.print(f"to the full data: {answers.distance}; {answers.ratio:.1f} % of its accuracy")
    for name, auroc in answers.detection.items():
        out.print(f"telling {name} apart: AUROC {auroc:.3f}", markup=False)
    if answers.fairness:
        out.print(str(answers.fairness))
    if answers.membership:
        out.print(
            f"membership inference: AUROC {answers.membership.auroc:.3f}, TPR {answers.membership.tpr:.1%} at 1 % FPR"
        )
    if answers.nearest:
        out.print(f"nearest training example: {min(answers.nearest):.2f} of the usual distance at the least")
    for table in (_corruptions(answers), _attacks(answers), _transfer(answers)):
        if table.rows:
            out.print(table)
    for warning in answers.diagnostics.get("warnings", []):
        err.print(f"warning: {warning}", style="yellow", markup=False)


def _say(scores: list[Scores], split: Split, posterior: PosteriorDraws) -> None:
    label = posterior.notes.get("label")
    out.print(summary(scores, len(split.test)) + (f" [{label}]" if label else ""))


def _corruptions(answers: Assessment) -> Table:
    found = {(row.name, row.severity): row.accuracy for row in answers.corruption}
    names = list(dict.fromkeys(row.name for row in answers.corruption))
    severities = sorted({row.severity for row in answers.corruption})
    examples = max((row.n for row in answers.corruption), default=0)
    table = Table(f"corruption, accuracy % of {examples:,} by severity", *map(str, severities), box=SIMPLE_HEAD)
    for name in names:
        table.add_row(name, *(f"{100 * found[name, severity]:.1f}" for severity in severities))
    return table


def _attacks(answers: Assessment) -> Table:
    table = Table("attack", "ε", "clean %", "robust %", "examples", box=SIMPLE_HEAD)
    for row in answers.attacks:
        table.add_row(
            row.name, f"{row.epsilon * 255:g}/255", f"{100 * row.clean:.1f}", f"{100 * row.robust:.1f}", str(row.n)
        )
    return table


def _transfer(answers: Assessment) -> Table:
    table = Table("network", "parameters", "seeds", "accuracy %", "NLL", box=SIMPLE_HEAD)
    for row in answers.transfer:
        if row.accuracy is None or row.nll is None:
            table.add_row(row.network, "–", "–", "–", "–")
        else:
            accuracy = f"{100 * row.accuracy:.1f}" + (f" ± {100 * (row.error or 0):.1f}" if row.seeds > 1 else "")
            table.add_row(row.network, f"{row.parameters:,}", str(row.seeds), accuracy, f"{row.nll:.2f}")
    return table
