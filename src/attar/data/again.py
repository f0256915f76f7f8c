"""Load again the data that a coreset or posterior was made from."""

from __future__ import annotations

from attar.core.errors import AttarError
from attar.data.download import Progress
from attar.data.load import Source, is_known, load
from attar.data.spec import Spec, Table
from attar.data.split import Origin, Split
from attar.data.transform import SCALINGS


def load_again(
    spec: Spec,
    origin: Origin | None,
    data: Source | Split | None = None,
    *,
    target: str | None = None,
    download: bool = True,
    progress: Progress | None = None,
) -> Split:
    """Load the data that a coreset or posterior was made from, in the same way: scaling, labels, shares, seed, damage.

    A file may name any path, so without ``data`` only known data sets are loaded. Texts get the artifact's own
    vocabulary and embeddings, tables its columns; a file of word vectors is not read again.

    Args:
        spec: Its spec, which holds the scaling, or the vocabulary and embeddings.
        origin: How its data was loaded, if that is recorded.
        data: Anything that ``load`` takes, or a ``Split``, which is used as it is; needed if the origin is a path, a
            hub name or unknown.
        target: The label column; by default the recorded one.
        download: Whether a known data set that is missing may be downloaded.
        progress: Called while a known data set is downloaded.
    """
    if isinstance(data, Split):
        return data
    then = origin or Origin(spec.name)
    if data is None:
        if places := foreign(then):
            raise AttarError(f"It was made from {' and '.join(places)}: pass that data explicitly (data=...).")
        data = source_of(then)
    if target is None and not (isinstance(data, str) and is_known(data)):
        target = then.target
    scaling = spec.transform.kind if spec.transform.kind in SCALINGS else then.scaling
    return load(
        data,
        val=then.val,
        test=then.test,
        seed=then.seed,
        scaling=scaling,
        target=target,
        like=spec,
        imbalance=then.imbalance,
        flip=then.flip,
        download=download,
        resize=then.resize,
        columns=None if isinstance(spec.element, Table) else then.columns,
        progress=progress,
    )


def foreign(origin: Origin) -> list[str]:
    """The paths and hub names in an origin, which are not trusted; known data sets are."""
    return [place for place in (origin.source, origin.test_source) if place is not None and not is_known(place)]


def source_of(origin: Origin) -> Source:
    """What to give to ``load``."""
    return origin.source if origin.test_source is None else {"train": origin.source, "test": origin.test_source}
