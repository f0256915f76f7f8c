"""The data that an artifact was made from, loaded as it was."""

from __future__ import annotations

from attar.core.errors import AttarError
from attar.data.download import Progress
from attar.data.load import Source, is_known, load
from attar.data.spec import Spec
from attar.data.split import Origin, Split
from attar.data.transform import SCALINGS


def load_again(
    spec: Spec,
    origin: Origin | None,
    data: Source | Split | None = None,
    *,
    target: str | None = None,
    progress: Progress | None = None,
) -> Split:
    """Load the data that an artifact was made from, with the scaling, label column, shares and seed of then.

    A file may name any place, so what it names is opened here only if it is a known data set.

    Args:
        spec: What the artifact holds; its transform says how examples are scaled.
        origin: How its data was loaded, where it says so.
        data: Anything that ``load`` takes, or a ``Split``, which is used as it is; needed where the artifact names a
            path, a hub name or nothing.
        target: The label column; the one of then if not set.
        progress: Called while a known data set is fetched.
    """
    if isinstance(data, Split):
        return data
    then = origin or Origin(spec.name)
    if data is None:
        if places := foreign(then):
            raise AttarError(f"What is evaluated was made from {' and '.join(places)}: name that data explicitly.")
        data = source_of(then)
    if target is None and not (isinstance(data, str) and is_known(data)):
        target = then.target
    scaling = spec.transform.kind if spec.transform.kind in SCALINGS else then.scaling
    return load(data, val=then.val, test=then.test, seed=then.seed, scaling=scaling, target=target, progress=progress)


def foreign(origin: Origin) -> list[str]:
    """The places that an origin names beside known data sets: paths and hub names, which may lead anywhere."""
    return [place for place in (origin.source, origin.test_source) if place is not None and not is_known(place)]


def source_of(origin: Origin) -> Source:
    """What to give to ``load``."""
    return origin.source if origin.test_source is None else {"train": origin.source, "test": origin.test_source}
