"""Write the report of a study or a coreset."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from attar.assess.questions import Assessment
from attar.continual import Continual
from attar.continual import results as continual
from attar.core.device import device_of
from attar.core.errors import AttarError, instance
from attar.core.files import inside
from attar.coreset import Coreset
from attar.data import Split
from attar.data.again import load_again
from attar.data.load import Source, load
from attar.nas import Nas
from attar.nas import results as nas
from attar.report.continual import write_continual
from attar.report.nas import write_nas
from attar.report.page import write
from attar.study.results import Study
from attar.study.runner import Watch, study_coreset

STUDY = "study.json"
RESULTS: dict[str, Callable[[Path], Study | Continual | Nas]] = {
    STUDY: Study.load,
    continual.RESULT: Continual.load,
    nas.RESULT: Nas.load,
}


def report(
    source: Study | Coreset | Continual | Nas | str | Path,
    path: str | Path = "report.html",
    *,
    data: Source | Split | None = None,
    answers: Sequence[Assessment | str | Path] = (),
    evaluations: int = 3,
    draws: int = 5,
    converged: bool = True,
    device: str = "cpu",
    watch: Watch | None = None,
) -> Path:
    """Write the HTML report of a study, a coreset or an application: one self-contained file.

    A coreset is evaluated first, together with a random subset, herding and the full data, with the same training
    settings, and the full data trained to convergence; the results are kept in a folder next to the page and reused.

    Args:
        source: A ``Study``, a result of ``attar.continual`` or ``attar.nas``, the JSON file or folder of one, a
            ``Coreset``, or its file.
        path: The HTML file to write.
        data: The data that a coreset or a study was made from: anything that ``attar.load`` takes, or a ``Split``;
            not needed for a known data set such as ``digits``. With it the page of a study has a map of the data.
        answers: Files of ``attar evaluate -o``, or ``Assessment`` objects, to show on the page.
        evaluations: Posteriors of a coreset and of each baseline.
        draws: Networks whose predictions are averaged.
        converged: Whether the full data is also trained to convergence for a coreset; it is kept for others.
        device: Where a coreset is evaluated: cpu, cuda, mps.
        watch: Called with a ``Progress`` for every finished part of that evaluation.

    Returns:
        ``path``.
    """
    asked = [answer if isinstance(answer, Assessment) else Assessment.load(answer) for answer in answers]
    found = opened(source) if isinstance(source, str | Path) else source
    if isinstance(found, Coreset):
        split = load_again(found.data.spec, found.recipe.origin, data).to(device_of(device))
        files = files_of(found, path)
        found = study_coreset(
            found, split, files, evaluations=evaluations, draws=draws, converged=converged, watch=watch
        )
        return write(found, files, Path(path), asked, split)
    with together(instance("source", found, Study, Continual, Nas, Coreset)):
        if isinstance(found, Continual):
            return write_continual(found, Path(path))
        if isinstance(found, Nas):
            return write_nas(found, Path(path))
        return write(found, found.folder or Path(path).parent, Path(path), asked, at_hand(found, data))


def text_of(found: Continual | Nas) -> str:
    """The page of an application as text."""
    with TemporaryDirectory() as folder:
        return report(found, Path(folder) / "page.html").read_text(encoding="utf-8")


def at_hand(study: Study, data: Source | Split | None = None) -> Split | None:
    """The data of a study: what is given, or what its coresets name, if that needs no download; else None.

    Args:
        study: The study.
        data: Its data, a ``Split`` or anything that ``attar.load`` takes; anything else is refused.
    """
    coreset = _first_coreset(study)
    try:
        if isinstance(data, Split):
            split = data
        elif coreset is not None:
            split = load_again(coreset.data.spec, coreset.recipe.origin, data, download=data is not None)
        elif data is not None:
            split = load(data)
        else:
            return None
    except AttarError:
        if data is not None:
            raise
        return None
    if _is_of(split, study):
        return split
    if data is not None:
        raise AttarError("This is not the data of the study, or not loaded in the same way: pass that, or none.")
    return None


def _is_of(split: Split, study: Study) -> bool:
    """Whether a study is of these examples; older files do not know the examples that were held out."""
    held_out = [split.val.fingerprint, split.test.fingerprint]
    return split.train.fingerprint == study.data.get("fingerprint") and held_out == study.data.get("held_out", held_out)


def _first_coreset(study: Study) -> Coreset | None:
    """A coreset of the study whose file can be read."""
    names = [run.coreset for run in study.runs if run.coreset and study.folder]
    for file in (inside(study.folder, name) for name in names if study.folder):
        if file is not None:
            try:
                return Coreset.load(file)
            except AttarError:
                continue
    return None


@contextmanager
def together(found: Study | Continual | Nas) -> Iterator[None]:
    """Refuse results of a file whose parts, each of the right type, contradict one another."""
    try:
        yield
    except AttarError:
        raise
    except (ValueError, TypeError, AttributeError, LookupError, ArithmeticError) as error:
        if found.folder is None:
            raise
        reason = f"{type(error).__name__}: {error}"
        raise AttarError(
            f"The results in {found.folder} contradict one another ({reason}): make them again."
        ) from error


def opened(path: str | Path) -> Study | Coreset | Continual | Nas:
    """What a file holds, or the result in a folder."""
    place = Path(path)
    if place.is_dir():
        found = [place / name for name in RESULTS if (place / name).exists()]
        if not found and (place / "config.json").exists():
            raise AttarError(f"{place} has no finished result yet: run the same command again to go on.")
        place = found[0] if found else place / STUDY
    if place.name in RESULTS:
        return RESULTS[place.name](place)
    return Study.load(place) if place.suffix == ".json" else Coreset.load(place)


def files_of(coreset: Coreset, page: str | Path) -> Path:
    """The folder of a coreset's evaluation: next to its page, one per coreset."""
    place = Path(page)
    return place.with_name(place.stem + "-files") / coreset.data.fingerprint[:12]
