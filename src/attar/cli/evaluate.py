"""`attar evaluate`: scores of a coreset or posterior, and further questions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from attar.assess import evaluate as score
from attar.assess.questions import Questions, assess, question
from attar.assess.score import most_frequent
from attar.cli.arguments import (
    DATA_HELP,
    DRAWS,
    Device,
    Draws,
    Force,
    OwnNetwork,
    OwnSampler,
    Seeds,
    numbers,
    require_own,
    words,
)
from attar.cli.console import out, plain, warnings_shown, working
from attar.cli.loading import USUAL, Target, TestFile
from attar.cli.options import Chosen
from attar.cli.origin import data_of
from attar.cli.tables import print_answers, summary
from attar.core import registry
from attar.core.device import device_of
from attar.core.files import open_tensors
from attar.core.lock import claimed
from attar.coreset import Coreset
from attar.data import Split
from attar.infer import Draws as PosteriorDraws
from attar.infer import infer
from attar.infer.diagnose import in_words
from attar.nets.train import Training

QUESTIONS = "Further evaluations (each takes time)"

File = Annotated[Path, typer.Argument(help="A coreset or posterior file.", metavar="FILE", show_default=False)]
OptionalData = Annotated[
    str | None, typer.Argument(help=DATA_HELP, metavar="DATA", show_default="the data that FILE was made from")
]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="JSON file for all results, for `attar report --answers`.",
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
        help="Distance to the predictions of networks trained on the full data, with that between two sets of those "
        "as a floor.",
        rich_help_panel=QUESTIONS,
    ),
]
Converged = Annotated[
    bool,
    typer.Option(
        "--converged/--no-converged",
        help="With --distance, also train the full data to convergence, and give the accuracy as a share of its "
        "accuracy.",
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
        help="Accuracy under adversarial attacks: apgd (cross-entropy and DLR, the usual one), apgd-ce, apgd-dlr, pgd, "
        "autoattack or standard.",
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
        help="Ablation: how much of the accuracy is due to the examples, not to soft labels or augmentation.",
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
    force: Force = False,
    output: Output = None,
    device: Device = "cpu",
    target: Target = None,
    test: TestFile = None,
    calibrate: Calibrate = False,
    distance: FullDistance = False,
    converged: Converged = True,
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

    By default the data is the one that FILE was made from; if that was a path, give it as DATA. Scores are accuracy (of
    all examples, on average over classes, and of the worst class), negative log-likelihood (NLL), expected calibration
    error (ECE) and Brier score of the averaged predictions:

        attar evaluate d.safetensors
        attar evaluate d.safetensors digits --seeds 0,1,2,3,4 --calibrate
        attar evaluate posterior.safetensors table.csv --test held-out.csv

    For a coreset, one posterior is inferred per seed, with the coreset's recommended training; the further
    questions below use the posterior of the first seed. Seeds, sampler and training do not apply to a posterior file.
    """
    with warnings_shown():
        subject = _opened(path, force)
    place = device_of(device)
    about, spec = (subject.recipe, subject.data.spec) if isinstance(subject, Coreset) else (subject, subject.spec)
    split = data_of(path, spec, about.origin, data, "DATA", test=test, target=target).to(place)
    asked = Questions(
        calibrate, distance, corruption, words(attack), words(networks), fairness, privacy, limit, converged
    )
    strange = {name: USUAL.read(name, device).test for name in words(ood)}
    with claimed(output) if output else nullcontext(), working("evaluating") as watch, warnings_shown():
        if isinstance(subject, PosteriorDraws):
            posteriors = [subject.to(split.train.device)]
            _say(posteriors, split)
            answers = question(posteriors[0], split, asked, name=path.stem, strange=strange, watch=watch)
        else:
            coreset = subject.to(split.train.device)
            require_own(coreset, sampler, force)
            training = registry.make(Training, asdict(coreset.training) | chosen.training, "training")
            once = partial(
                infer, coreset, sampler, draws=draws, network=network, training=training, options=chosen.options
            )
            posteriors = list(_posteriors(once, numbers(seeds, "seeds"), watch))
            _say(posteriors, split)
            answers = assess(coreset, split, asked, posteriors[0], training=training, strange=strange, watch=watch)
        if output:
            answers.save(output)
    print_answers(answers)
    if output:
        out.print(f"→ {output}", soft_wrap=True)


def _opened(path: Path, force: bool) -> Coreset | PosteriorDraws:
    with open_tensors(path) as file:
        posterior = (file.metadata() or {}).get("format", "").startswith("attar-posterior-")  # of any version
    return PosteriorDraws.load(path) if posterior else Coreset.load(path, force)


def _posteriors(
    once: Callable[..., PosteriorDraws], seeds: list[int], watch: Callable[[str], None]
) -> Iterator[PosteriorDraws]:
    for seed in seeds:
        watch(f"posterior of seed {seed}")
        yield once(seed=seed)


def _say(posteriors: list[PosteriorDraws], split: Split) -> None:
    scores, label = [score(posterior, split.test) for posterior in posteriors], posteriors[0].notes.get("label")
    out.print(summary(scores, most_frequent(split.train)) + (f" [{plain(str(label))}]" if label else ""))
    for chains in dict.fromkeys(in_words(posterior.notes) for posterior in posteriors):
        if chains:
            out.print(chains)
