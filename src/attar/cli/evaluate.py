"""`attar evaluate`: scores of a coreset or posterior, and further questions."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from attar.assess import evaluate as score
from attar.assess.questions import Assessment, Questions, assess, question
from attar.cli.arguments import (
    DATA_HELP,
    DRAWS,
    Device,
    Draws,
    OwnNetwork,
    OwnSampler,
    Seeds,
    Target,
    TestFile,
    numbers,
    read,
    words,
)
from attar.cli.console import err, out, plain, summary, warnings_shown, working
from attar.cli.options import Chosen
from attar.cli.origin import data_of
from attar.core import registry
from attar.core.device import device_of
from attar.core.files import open_tensors
from attar.coreset import Coreset
from attar.data import Split
from attar.infer import Draws as PosteriorDraws
from attar.infer import infer
from attar.infer.contract import FORMAT as POSTERIOR
from attar.nets.train import Training

QUESTIONS = "Further questions (each takes time)"

File = Annotated[Path, typer.Argument(help="A coreset or posterior file.", metavar="FILE", show_default=False)]
OptionalData = Annotated[
    str | None, typer.Argument(help=DATA_HELP, metavar="[DATA]", show_default="the data that FILE was made from")
]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="JSON file for all answers, for `attar report --answers`.",
        show_default=False,
    ),
]
Calibrate = Annotated[
    bool,
    typer.Option("--calibrate", help="Temperature scaling, fitted on validation data.", rich_help_panel=QUESTIONS),
]
FullDistance = Annotated[
    bool,
    typer.Option(
        "--distance",
        help="Distance to the predictions of networks trained on the full data.",
        rich_help_panel=QUESTIONS,
    ),
]
Corruption = Annotated[
    bool,
    typer.Option(
        "--corruption", help="Accuracy under 18 image corruptions at five severities.", rich_help_panel=QUESTIONS
    ),
]
Attacks = Annotated[
    str,
    typer.Option(
        "--attack",
        metavar="NAME,…",
        help="Accuracy under adversarial attacks: pgd, apgd-ce, apgd-dlr, apgd, autoattack or standard.",
        show_default=False,
        rich_help_panel=QUESTIONS,
    ),
]
Networks = Annotated[
    str,
    typer.Option(
        metavar="NAME,…",
        help="Accuracy of other networks trained on the coreset, such as resnet10,vgg11,mlp.",
        show_default=False,
        rich_help_panel=QUESTIONS,
    ),
]
Fairness = Annotated[
    bool,
    typer.Option(
        "--fairness",
        help="How much of the accuracy is due to the examples, not to soft labels or augmentation.",
        rich_help_panel=QUESTIONS,
    ),
]
Privacy = Annotated[
    bool,
    typer.Option(
        "--privacy",
        help="Membership inference attack, and the nearest training examples.",
        rich_help_panel=QUESTIONS,
    ),
]
Strange = Annotated[
    str,
    typer.Option(
        "--ood",
        metavar="DATA,…",
        help="Out-of-distribution detection: other data sets of the same shape.",
        show_default=False,
        rich_help_panel=QUESTIONS,
    ),
]
Limit = Annotated[
    int,
    typer.Option(
        min=1, metavar="N", help="Test examples to use for corruptions and attacks.", rich_help_panel=QUESTIONS
    ),
]


def evaluate(
    path: File,
    data: OptionalData = None,
    seeds: Seeds = "0,1,2",
    sampler: OwnSampler = None,
    draws: Draws = DRAWS,
    network: OwnNetwork = None,
    output: Output = None,
    device: Device = "cpu",
    target: Target = None,
    test: TestFile = None,
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
    """Score a coreset or a posterior on a test set.

    By default the data is the one that FILE was made from; if that was a path, give it as DATA. Scores are accuracy,
    negative log-likelihood (NLL), expected calibration error (ECE) and Brier score of the averaged predictions:

        attar evaluate d.safetensors
        attar evaluate d.safetensors digits --seeds 0,1,2,3,4 --calibrate
        attar evaluate posterior.safetensors table.csv --test held-out.csv

    For a coreset, one posterior is inferred per seed, with the training that the coreset was made for; the further
    questions below use the posterior of the first seed. Seeds, sampler and training do not apply to a posterior file.
    """
    subject = _opened(path)
    place = device_of(device)
    spec, origin = (subject.data.spec, subject.recipe.origin) if isinstance(subject, Coreset) else (subject.spec, None)
    split = data_of(path, spec, origin, data, "DATA", test=test, target=target).to(place)
    asked = Questions(calibrate, distance, corruption, words(attack), words(networks), fairness, privacy, limit)
    strange = {name: read(name, device=device).test for name in words(ood)}
    with working("evaluating") as watch, warnings_shown():
        if isinstance(subject, PosteriorDraws):
            posteriors = [subject.to(split.train.device)]
            _say(posteriors, split)
            answers = question(posteriors[0], split, asked, name=path.stem, strange=strange, watch=watch)
        else:
            coreset = subject.to(split.train.device)
            training = registry.make(Training, asdict(coreset.training) | chosen.training, "training")
            once = partial(
                infer, coreset, sampler, draws=draws, network=network, training=training, options=chosen.options
            )
            posteriors = []
            for seed in numbers(seeds, "seeds"):
                watch(f"posterior of seed {seed}")
                posteriors.append(once(seed=seed))
            _say(posteriors, split)
            answers = assess(coreset, split, asked, posteriors[0], training=training, strange=strange, watch=watch)
    show(answers)
    if output:
        answers.save(output)
        out.print(f"→ {output}", soft_wrap=True)


def _opened(path: Path) -> Coreset | PosteriorDraws:
    with open_tensors(path) as file:
        posterior = (file.metadata() or {}).get("format") == POSTERIOR
    return PosteriorDraws.load(path) if posterior else Coreset.load(path)


def show(answers: Assessment) -> None:
    """Print the answers, each as a line or table."""
    if answers.calibrated:
        out.print(f"at temperature {answers.temperature:.2f}: {answers.calibrated}")
    if answers.distance:
        out.print(f"distance to the full data: {answers.distance}; {answers.ratio:.1f} % of its accuracy")
    for name, auroc in answers.detection.items():
        out.print(f"out-of-distribution detection, {plain(name)}: AUROC {auroc:.3f}", markup=False)
    if answers.fairness:
        out.print(str(answers.fairness))
    if answers.membership:
        out.print(
            f"membership inference: AUROC {answers.membership.auroc:.3f}, TPR {answers.membership.tpr:.1%} at 1 % FPR"
        )
    if answers.nearest:
        out.print(
            f"nearest training example: at {min(answers.nearest):.2f} of the typical distance between training examples"
        )
    for table in (_corruptions(answers), _attacks(answers), _transfer(answers)):
        if table.rows:
            out.print(table)
    for warning in answers.diagnostics.get("warnings", []):
        err.print(f"warning: {warning}", style="yellow", markup=False)


def _say(posteriors: list[PosteriorDraws], split: Split) -> None:
    scores, label = [score(posterior, split.test) for posterior in posteriors], posteriors[0].notes.get("label")
    out.print(summary(scores, len(split.test)) + (f" [{plain(str(label))}]" if label else ""), soft_wrap=True)


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
