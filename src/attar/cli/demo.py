"""`attar demo`: a small comparison on data that needs no download."""

from __future__ import annotations

from pathlib import Path
from statistics import mean

from attar.cli.arguments import Device, Folder
from attar.cli.compare import present
from attar.cli.console import bar, command, following, out
from attar.core.device import device_of
from attar.engine import Engine
from attar.nets.train import Training
from attar.study import Study, StudySpec
from attar.study.runner import run_study
from attar.study.spec import CONVERGED, FULL

LEARNT = ("dm", "dc")
DEMO = StudySpec(data="digits", methods=LEARNT, per_class=(1,), training=Training(batch=64), draws=3).stepped(100)


def demo(output: Folder = Path("demo"), device: Device = "cpu") -> None:
    """Reduce the embedded digits to ten examples with four methods, and write a report: one or two minutes."""
    split = DEMO.load_data().to(device_of(device))
    with bar() as shown:
        study = run_study(DEMO, split, output, command=command(), engine=Engine(workers=2), watch=following(shown))
    out.print(verdict(study))
    present(study, output, split)


def verdict(study: Study) -> str:
    """The result in one sentence: test accuracy of the method that is best on validation, and of the baselines."""
    reached = {m: mean(run.test.accuracy for run in runs) for (m, _), runs in study.groups().items()}
    seen = {m: mean(run.validation.accuracy for run in runs) for (m, _), runs in study.groups().items()}
    best = max(LEARNT, key=seen.__getitem__)  # chosen on validation, never on test
    full = CONVERGED if CONVERGED in reached else FULL
    return (
        f"Trained on ten learnt digits ({best}), networks classify {reached[best]:.0%} of the test digits correctly; "
        f"on ten random digits {reached['uniform']:.0%}; on all {study.data['train']:,} training digits "
        f"{reached[full]:.0%}{' after training to convergence' if full == CONVERGED else ''}."
    )
