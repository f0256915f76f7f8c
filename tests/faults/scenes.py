"""What is disturbed: commands on the embedded digits, and a download, each with files that were there before."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import sys
import tarfile
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attar.cli import main
from attar.core.temporary import TEMPORARY
from attar.data.download import provide
from attar.data.sources import SOURCES, Remote
from attar.data.verified import RECORD

SMALL = ["--network", "mlp-d1w8", "--train-steps", "3"]
REDUCE = ["reduce", "digits", "--method", "dm", "--per-class", "1", "--steps", "4", "--validate", "2", *SMALL]
#: Parts of results that differ from run to run: what they cost, where and when.
SPENT = {"reduce_cost", "infer_cost", "cost", "wall", "cpu", "memory", "machine", "commands", "command", "ladder"}
PAGES = {".csv", ".svg", ".html", ".cost"}  #: hold costs; only that they are there is compared
#: Locks, the record of times of files, and an archive that was unpacked: it may be the user's, so it may stay.
PASSING = ("lock", RECORD, "box.tar")
INSIDE = {"box/a.bin": bytes(range(256)) * 300, "box/b.bin": b"b" * 1000}


@dataclass(frozen=True)
class Scene:
    """A command and the state in which it finds its folder.

    Attributes:
        run: Runs it in the folder, which is the working directory; ends by returning or ``SystemExit``.
        before: Commands that make what is there before.
        keep: Patterns of files from before that must stay as they are or become those of the finished command.
        workers: Whether it starts processes of its own, whose operations are not counted.
    """

    run: Callable[[], None]
    before: Sequence[Sequence[str]] = ()
    keep: Sequence[str] = ("*",)
    workers: bool = False


def command(*words: str) -> Callable[[], None]:
    """A command line."""

    def call() -> None:
        sys.argv = ["attar", *words]
        main(list(words))

    return call


def exit_code(run: Callable[[], None]) -> int:
    """How a command ends."""
    try:
        run()
    except SystemExit as stop:
        return int(stop.code or 0)
    return 0


def archive() -> bytes:
    """The archive that is downloaded."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for name, content in INSIDE.items():
            about = tarfile.TarInfo(name)
            about.size = len(content)
            tar.addfile(about, io.BytesIO(content))
    return packed.getvalue()


def download() -> None:
    """Download and unpack an archive from the server whose address is in the environment."""
    url = os.environ["ATTAR_FAULTS_SITE"]
    digest = hashlib.sha256(archive()).hexdigest()
    SOURCES["cifar10"] = (Remote(f"{url}/box.tar", digest, tuple(INSIDE)),)
    sys.argv = ["attar", "reduce", "cifar10"]
    try:
        provide("cifar10", Path("data"))
    except (ValueError, OSError) as error:
        print(f"attar: {error}", file=sys.stderr)
        raise SystemExit(2 if type(error).__module__.startswith("attar") else 1) from error


EXPERTS = ["experts", "digits", "--network", "mlp-d1w8", "--epochs", "2", "-o", "store"]
COMPARE = [
    *("compare", "digits", "--methods", "dm", "--per-class", "1", "--seeds", "1", "--steps", "3", "--draws", "1"),
    *("--no-converged", *SMALL, "-o", "study"),
]
CONTINUAL = [
    *("continual", "digits", "--stages", "2", "--per-class", "1", "--no-baselines", "--methods", "dm"),
    *("--steps", "2", "--seeds", "1", "--draws", "1", *SMALL, "-o", "stages"),
]
NAS = [
    *("nas", "digits", "--methods", "dm", "--no-baselines", "--per-class", "1", "--depths", "1", "--widths", "2,4"),
    *("--seeds", "1", "--norms", "none", "--pools", "avg", "--activations", "relu", "--steps", "2"),
    *("--full-steps", "3", "--train-steps", "2", "-o", "search"),
]
SCENES = {
    "reduce": Scene(
        command(*REDUCE, "--log", "d.jsonl", "--checkpoint-every", "0.001", "-o", "d.safetensors"),
        [[*REDUCE, "--seed", "5", "-o", "d.safetensors"]],
    ),
    "experts": Scene(command(*EXPERTS, "-n", "2"), [[*EXPERTS, "-n", "1"]], ["store/trajectory-0000.safetensors"]),
    "compare": Scene(command(*COMPARE), [[*COMPARE, "--methods", "herding"]], ["study/runs/*", "study/coresets/*"]),
    "infer": Scene(
        command("infer", "d.safetensors", "--draws", "2", *SMALL, "-o", "p.safetensors"),
        [[*REDUCE, "-o", "d.safetensors"], ["infer", "d.safetensors", "--seed", "7", *SMALL, "-o", "p.safetensors"]],
    ),
    "download": Scene(download),
    "export": Scene(
        command("export", "d.safetensors", "d.npz"),
        [[*REDUCE, "-o", "d.safetensors"], ["export", "d.safetensors", "d.npz"]],
    ),
    "select": Scene(
        command("select", "digits", "--method", "herding", "--per-class", "1", *SMALL, "-o", "picks.npz"),
        [["select", "digits", "--method", "uniform", "--per-class", "1", *SMALL, "-o", "picks.npz"]],
    ),
    "continual": Scene(command(*CONTINUAL)),
    "nas": Scene(command(*NAS)),
    "compare with workers": Scene(command(*COMPARE, "--workers", "2"), workers=True),
    "experts with workers": Scene(command(*EXPERTS, "-n", "3", "--workers", "2"), workers=True),
    "continual with workers": Scene(command(*CONTINUAL, "--workers", "2"), workers=True),
    "nas with workers": Scene(command(*NAS, "--workers", "2"), workers=True),
}


def prepare(scene: Scene, folder: Path) -> None:
    """Make what is there before the command, in a process whose working directory this becomes."""
    folder.mkdir(parents=True, exist_ok=True)
    os.chdir(folder)
    for words in scene.before:
        code = exit_code(command(*words))
        assert code == 0, (words, code)


def state(folder: Path) -> dict[str, Any]:
    """What is in a folder, in a form that is equal for equal results; none of what is passing."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_dir() or name.endswith(PASSING) or TEMPORARY in name:  # ``left`` finds temporaries
            continue
        if path.suffix in PAGES:
            found[name] = "there"
        elif path.suffix == ".json":
            found[name] = _lasting(json.loads(path.read_text()))
        else:
            found[name] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def left(folder: Path) -> list[str]:
    """What should not be left: temporaries, parts of downloads, files that were set aside."""
    marks = (TEMPORARY, ".part", ".checkpoint")
    return [p.name for p in folder.rglob("*") if p.name.endswith(marks) or ".unreadable-" in p.name]


def _lasting(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _lasting(inner) for key, inner in value.items() if key not in SPENT}
    return [_lasting(inner) for inner in value] if isinstance(value, list) else value


def copied(source: Path, target: Path) -> Path:
    """A fresh copy of a prepared folder."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target)
    return target


def quiet() -> None:
    """No warnings on the way."""
    warnings.simplefilter("ignore")
