"""Examples of several data sets as one, whose classes are the union by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch

from attar.data.data import Data, soft
from attar.data.spec import Classes


def merge(parts: Sequence[Data], one_source: bool = False) -> Data:
    """The examples of all parts in order, in the transform of the first; rows and keys are kept if ``one_source``.

    Labels become soft if those of any part are, and weights are kept if any part has some, with 1 elsewhere.
    """
    target = parts[0].spec.target
    for part in parts[1:]:
        target = target.union(part.spec.target)
    spec = replace(parts[0].spec, target=target)
    placed = [_placed(part.transformed(spec.transform), target) for part in parts]
    if len({part.y.ndim for part in placed}) > 1:
        placed = [replace(part, y=soft(part.y, len(target))) for part in placed]
    dense = any(part.x.is_floating_point() for part in placed)
    x = torch.cat([part.dense().x if dense else part.x for part in placed])
    weights = None
    if any(part.weights is not None for part in placed):
        weights = torch.cat([torch.ones(len(p), device=p.device) if p.weights is None else p.weights for p in placed])
    data = Data(x, torch.cat([part.y for part in placed]), weights, spec)
    return _named(data, parts) if one_source else data


def _named(data: Data, parts: Sequence[Data]) -> Data:
    """The merged examples with the rows and keys of the parts, where all have some."""
    rows = [part.rows for part in parts if part.rows is not None]
    if len(rows) < len(parts):
        return data
    together, names = torch.cat(rows), [str(name) for part in parts for name in part.names or ()]
    keyed = all(part.keys is not None for part in parts)
    return replace(data, rows=together, keys=dict(zip(together.tolist(), names, strict=True)) if keyed else None)


def _placed(data: Data, target: Classes) -> Data:
    """The same examples with labels of a larger set of classes."""
    places = target.places(data.spec.target.names).to(data.device)
    if data.y.ndim == 1:
        return replace(data, y=places[data.y])
    wide = data.y.new_zeros(len(data), len(target))
    wide[:, places] = data.y
    return replace(data, y=wide)
