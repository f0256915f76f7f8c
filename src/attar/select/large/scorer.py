"""What examples are seen through: the spec, the network and its parameters, which are the same for all parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from attar.core.errors import AttarError
from attar.core.streams import reduction, seed_of
from attar.data import Classes, Data, Spec
from attar.data.parts import InParts
from attar.data.split import Reading, read_texts
from attar.data.text import Tokeniser
from attar.data.transform import Standard
from attar.nets import Network, default, network
from attar.nets.train import Training
from attar.select.contract import Selector
from attar.select.large.jobs import Job, picked_rows
from attar.select.large.survey import Survey
from attar.select.sources import Embedded
from attar.select.view import View

SAMPLE = 20_000  #: rows that the scoring network is trained on, at most
FEW = 64  #: rows by which it is found out whether a method asks for predictions


class _OfPart:
    """A view of some rows of a table; nothing can be trained on it, since it is not all the data."""

    def _trainable(self) -> Any:
        raise AttarError(
            "This method trains networks of its own on all examples, so it cannot select from parts of a table: choose "
            "uniform, k-center, herding, craig, lcmat-s or another that does not."
        )


class EmbeddedPart(_OfPart, Embedded):
    """Vectors of some rows."""


class SeenPart(_OfPart, View):
    """Images or texts of some rows, through a network."""


@dataclass(frozen=True)
class Scorer:
    """How rows of a table become a view; it can be sent to other processes.

    Args:
        spec: What an example is and a label is.
        training: Training of the scoring network.
        seed: Of its stream.
        net: Its name or a trained module; None for vectors, whose last layer is all that is trained.
        coder: Maps texts to tokens.
        theta: Its parameters; None if the method does not ask for predictions.
        labelled: Whether labels are known.
    """

    spec: Spec
    training: Training
    seed: int
    net: str | nn.Module | None = None
    coder: Tokeniser | None = None
    theta: Tensor | None = None
    labelled: bool = True

    def inputs(self, x: Any) -> Tensor:
        """Examples as the network takes them."""
        if self.coder is not None:
            return self.coder(x)
        if x.shape[1:] != self.spec.element.shape:
            raise AttarError(
                f"A row holds an example of shape {x.shape[1:]} where others have {self.spec.element.shape}: give "
                "all the same shape."
            )
        return torch.from_numpy(x) if self.net is None else self.spec.transform.apply(_floats(x))

    def view(self, x: Tensor, y: Tensor, counts: Tensor | None = None, theta: Tensor | None = None) -> View:
        """The view of some rows; by default under the trained parameters."""
        kind = EmbeddedPart if self.net is None else SeenPart
        gen = reduction(seed_of("scoring", self.seed))
        given = self.theta if theta is None else theta
        view = kind(Data(x, y, spec=self.spec), self.network, self.training, gen, theta=given)
        view.labelled, view.counts = self.labelled, counts
        return view

    @property
    def tensors(self) -> list[Tensor]:
        """All that was fitted to examples."""
        return [*self.spec.transform.tensors().values(), *([] if self.theta is None else [self.theta])]

    @property
    def network(self) -> Network:
        """The network that scores."""
        classes = max(2, len(self.spec.target))
        if isinstance(self.net, nn.Module):
            return Network(type(self.net).__name__, self.spec.element.shape, classes, _Copies(self.net))
        if self.net is None:
            return network("linear", self.spec.element.shape, classes)
        return network(self.net, self.spec)


class _Copies:
    """Makes copies of a trained module; a class, so that it can be sent to other processes."""

    def __init__(self, module: nn.Module) -> None:
        self.module = deepcopy(module).eval().requires_grad_()

    def __call__(self) -> nn.Module:
        return deepcopy(self.module)


def scorer(
    columns: InParts,
    jobs: Sequence[Job],
    known: Survey,
    method: Selector,
    *,
    net: str | nn.Module | None,
    training: Training,
    seed: int,
    reading: Reading,
    most: int,
    rows: int | None = None,
) -> Scorer:
    """Fit what all parts share on a random sample of the rows: scaling, vocabulary and the scoring network.

    The network is trained where the method asks for predictions, and for images and texts always, unless a trained
    module is given.

    Args:
        columns: The table.
        jobs: How it is cut.
        known: Its classes.
        method: The method that selects.
        net: The network's name, or a trained module; None for the default.
        training: Training of the network.
        seed: The user's seed.
        reading: How texts become tokens.
        most: Rows of the sample at most.
        rows: Take the first rows instead, so many, and train nothing: to estimate time.
    """
    if columns.kind == "vectors" and net is not None:
        raise AttarError("Vectors need no network: leave out the network, or give a column of images or texts.")
    if columns.kind == "vectors":
        few = picked_rows(columns, jobs, np.arange(min(FEW, sum(job.rows for job in jobs))))
        made = _fitted(columns, few.x, known, net, training, seed, reading)
        start = made.network.init(reduction(seed_of("scoring", seed)))
        if not _asks(method, made.view(made.inputs(few.x), labels_of(few, known), theta=start)):
            return made
    chosen = sampled(jobs, min(SAMPLE, most), seed) if rows is None else np.arange(rows)
    sample = picked_rows(columns, jobs, chosen)
    made = _fitted(columns, sample.x, known, net, training, seed, reading)
    x, y = made.inputs(sample.x), labels_of(sample, known)
    start = made.network.init(reduction(seed_of("scoring", seed)))
    if isinstance(net, nn.Module):
        return replace(made, theta=start)
    if not made.labelled:
        raise AttarError(
            "Scoring these examples needs labels: give the column of classes with --label, or choose a method that "
            "needs none (uniform, herding, k-center on vectors)."
        )
    if rows is not None:
        return replace(made, theta=start)
    whole: Callable[..., View] = Embedded if made.net is None else View
    view = whole(Data(x, y, spec=made.spec), made.network, training, reduction(seed_of("scoring", seed)))
    return replace(made, theta=method.seen(view).theta.detach().clone())


def labels_of(batch: Any, known: Survey) -> Tensor:
    """The classes of rows, or zeros."""
    return torch.zeros(len(batch.numbers), dtype=torch.int64) if batch.labels is None else known.codes(batch.labels)


def _asks(method: Selector, view: View) -> bool:
    """Whether a method asks for predictions of these examples."""
    method.select(view, 1, torch.Generator().manual_seed(0))
    return method.seen(view).predicts


def sampled(jobs: Sequence[Job], most: int, seed: int) -> Any:
    """Different row numbers, all equally likely, in increasing order."""
    n = sum(job.rows for job in jobs)
    if n <= most:
        return np.arange(n)
    gen = reduction(seed_of("sample", seed))
    found = torch.randint(n, (2 * most,), generator=gen).unique()  # half of them if n is near to most
    while len(found) < most:
        found = torch.cat([found, torch.randint(n, (most,), generator=gen)]).unique()
    return found[torch.randperm(len(found), generator=gen)[:most]].sort().values.numpy()


def _fitted(
    columns: InParts,
    x: Any,
    known: Survey,
    net: str | nn.Module | None,
    training: Training,
    seed: int,
    reading: Reading,
) -> Scorer:
    target, labelled = Classes(known.names) if known.values else Classes.of(2), bool(known.values)
    name = "table"
    if columns.kind == "texts":
        coder, embedding = read_texts(x, reading)
        spec = Spec(coder.element, target, embedding, name)
        return Scorer(spec, training, seed, _named(net, spec), coder, labelled=labelled)
    if columns.kind == "vectors":
        return Scorer(Spec.of(x.shape[1:], target.names, name=name), training, seed, labelled=labelled)
    spec = Spec.of(x.shape[1:], target.names, Standard.fit(_floats(x)), name)
    return Scorer(spec, training, seed, _named(net, spec), labelled=labelled)


def _named(net: str | nn.Module | None, spec: Spec) -> str | nn.Module:
    return default(spec) if net is None else net


def _floats(x: Any) -> Tensor:
    """Pixels between 0 and 1."""
    return torch.from_numpy(x).float() / 255
