"""A coreset: a few examples with everything needed to train on them, in one file."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import TypeAdapter, ValidationError
from torch import Tensor
from torch.utils.data import TensorDataset

from attar.core import registry
from attar.core.aside import read_cost, write_cost
from attar.core.errors import AttarError, DamagedFile, other_format
from attar.core.files import parsed, read_tensors, write_tensors
from attar.data.data import Data, count_in_words
from attar.data.foreign import REGRESSED, are_weights, asked, examples
from attar.data.load import Source, load
from attar.data.merge import merge
from attar.data.spec import Spec, Table, Tokens, Vector
from attar.data.split import Split
from attar.nets import default
from attar.nets.names import canonical, parse
from attar.nets.train import Training
from attar.recipe import FOREIGN, Recipe, capped, merged, one_source

FORMAT = "attar-coreset-2"


@dataclass(frozen=True, repr=False)
class Coreset:
    """A few examples that replace a training set.

    Args:
        data: The examples, transformed as ``data.spec.transform`` says, with labels and weights.
        recipe: How they were made.
        indices: Positions in ``split.train``, for selected examples; ``rows`` are the user's own.
        step_size: The learning rate learnt with them, if any.
        extra: Tensors beside the examples, such as the parameters of the generator that made them.
    """

    data: Data
    recipe: Recipe
    indices: Tensor | None = None
    step_size: float | None = None
    extra: Mapping[str, Tensor] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.data)

    def __repr__(self) -> str:
        recipe, spec = self.recipe, self.data.spec
        kind, counted = type(spec.element).__name__.lower(), count_in_words(self.data.weights)
        return (
            f"Coreset({len(self)} examples of {spec.name!r} by {recipe.method}, {recipe.amount}, seed "
            f"{recipe.seed}; {kind} {spec.element.shape}, {len(spec.target)} classes; for {recipe.network}, "
            f"{recipe.sampler}{f'; made in {recipe.cost.wall:.1f} s' if recipe.cost.wall else ''}"
            f"{counted and f'; {counted}'})"
        )

    @property
    def soft(self) -> bool:
        """Whether labels are rows of numbers: soft labels or regression targets."""
        return self.data.y.ndim == 2

    @property
    def weighted(self) -> bool:
        """Whether examples have weights."""
        return self.data.weights is not None

    @property
    def rows(self) -> list[int] | list[str] | None:
        """For selected examples, their numbers or keys in the file or array that the user gave."""
        return self.data.names

    @property
    def training(self) -> Training:
        """Recommended training: the recipe's, with the learnt step size if there is one."""
        recorded = self.recipe.training
        return recorded if self.step_size is None else replace(recorded, lr=self.step_size)

    def pixels(self) -> Tensor:
        """The examples in the units of the original data: images in [0, 1], table values, or tokens."""
        return self.data.spec.stored(self.data.x)

    def values(self) -> dict[str, list[Any]]:
        """The rows of a table by column: valid values, to which learnt rows are rounded; networks see ``data.x``."""
        element = self.data.spec.element
        if not isinstance(element, Vector):
            raise AttarError("These examples are not rows of a table: use pixels() or texts().")
        return element.decode(self.pixels())

    def texts(self) -> list[str]:
        """The examples as words, for token sequences; learnt embeddings as their nearest words."""
        element = self.data.spec.element
        if not isinstance(element, Tokens):
            raise AttarError("These examples are not texts: use pixels().")
        return [element.text(tokens) for tokens in self.pixels().tolist()]

    def numpy(self) -> tuple[NDArray[np.float32], NDArray[Any]]:
        """Flat scaled examples and class labels, as a scikit-learn estimator's ``fit`` takes them.

        Warns where the coreset holds more: soft labels or regression targets (``data.y``), or weights
        (``data.weights``, for ``fit(x, y, sample_weight=...)``).
        """
        told = {"soft labels (coreset.data.y)": self.soft, "weights (coreset.data.weights)": self.weighted}
        warn_lost("numpy()", [name for name, held in told.items() if held], "take them from there")
        return self.data.x.flatten(1).cpu().numpy(), self.data.hard.cpu().numpy()

    def dataset(self) -> TensorDataset:
        """Scaled examples and labels, as a plain PyTorch ``DataLoader`` takes them.

        A weighted coreset gives triples ``x, y, weight``. Labels are rows of numbers where they are soft, or
        regression targets: ``training.loss`` names the loss that they are for.
        """
        weights = [] if self.data.weights is None else [self.data.weights]
        return TensorDataset(self.data.x, self.data.y, *weights)

    def to(self, device: torch.device | str) -> Coreset:
        """A copy on another ``device``."""
        return replace(self, data=self.data.to(device))

    def merge(self, *others: Coreset) -> Coreset:
        """One coreset with its examples and those of ``others``, whose classes are the union by name.

        ``attar.infer(a.merge(b))`` trains a network with one output for each of these classes. All coresets must hold
        examples of one kind and be made for the same sampler and loss. Examples take this coreset's transform, and
        keep their rows if all coresets were made from the same training data.
        """
        parts = [self, *others]
        for other in others:
            _require_mergeable(self, other)
        recipes = [part.recipe for part in parts]
        same, places = one_source(recipes), [part.indices for part in parts if part.indices is not None]
        data = merge([part.data for part in parts], same)
        indices = torch.cat(places) if same and len(places) == len(parts) else None
        return Coreset(data, merged(recipes), indices, self.step_size)

    def save(self, path: str | Path) -> None:
        """Write one safetensors file at ``path``; an existing file is replaced only by a complete new one.

        What it cost is written beside it (``.cost``), so that the same run gives the same bytes.
        """
        transform, spec = self.data.spec.pack()
        tensors = {"x": self.data.x, "y": self.data.y, **transform}
        optional = {"weights": self.data.weights, "indices": self.indices, "rows": self.data.rows}
        tensors |= {name: tensor for name, tensor in optional.items() if tensor is not None}
        tensors |= {f"extra.{name}": tensor for name, tensor in self.extra.items()}
        if self.step_size is not None:
            tensors["step_size"] = torch.tensor(self.step_size, dtype=torch.float64)
        header = {
            "format": FORMAT,
            "recipe": TypeAdapter(Recipe).dump_json(self.recipe, exclude={"cost"}).decode(),
            "spec": spec,
        }
        if self.data.keys is not None:
            header["keys"] = json.dumps(self.data.names)
        write_cost(path, self.data.fingerprint, self.recipe.cost)
        write_tensors(path, tensors, header)

    @staticmethod
    def from_arrays(
        x: Any,
        y: Any,
        *,
        data: Source | Split | None = None,
        scaling: str | None = None,
        convention: str | None = None,
        training: Training | None = None,
        weights: Any = None,
        method: str = FOREIGN,
        seed: int = 0,
        network: str | None = None,
        sampler: str | None = None,
        sampler_options: Mapping[str, Any] | None = None,
        source: str | None = None,
    ) -> Coreset:
        """A set that was made elsewhere; what arrays do not say is asked for.

        Args:
            x: Examples ``(n, ...)`` as networks are to see them, so already scaled.
            y: The class of each, or rows of numbers.
            data: The data that it stands for: a ``Split`` with this scaling, or anything that ``attar.load`` takes.
            scaling: How the examples are scaled: ``standard``, ``zca`` or ``none``; fitted on the data.
            convention: Of labels in rows: ``probabilities``, ``targets``, or ``centred`` (targets minus 1/classes).
            training: How to train on it.
            weights: One per example, if they differ.
            method: What made it.
            seed: The seed that it was made with.
            network: What it was made for; by default a small network for the data.
            sampler: Recommended sampler; by default an ensemble, and ``last-layer-vi`` for regression targets.
            sampler_options: Its options.
            source: Where it was published.
        """
        given = {"data": data, "scaling": scaling, "training": training}
        if missing := [asked(name) for name, value in given.items() if value is None]:
            raise AttarError(f"A set that was made elsewhere does not say everything: state {'; '.join(missing)}.")
        split = data if isinstance(data, Split) else load(data, scaling=str(scaling))
        if split.spec.transform.kind != scaling:
            raise AttarError(f"The data was not loaded with the scaling {scaling}: load it with the same.")
        held = examples(x, y, split, scaling=str(scaling), convention=convention, weights=weights)
        regressed = convention in REGRESSED
        if training is not None and regressed != (training.loss == "squared") and held.y.ndim == 2:
            right = "squared" if regressed else "cross-entropy"
            raise AttarError(f"Labels that are {convention} are not for the loss {training.loss}: state {right}.")
        named, own = sampler or ("last-layer-vi" if regressed else "ensemble"), dict(sampler_options or {})
        built = registry.build(named, own, "infer")
        recipe = Recipe(
            method,
            max(1, len(held) // held.classes),
            seed,
            split.spec.name,
            split.train.fingerprint,
            canonical(*parse(network)) if network else default(split.spec),
            version("attar"),
            training=training or Training(),
            sampler=named,
            sampler_options={name: getattr(built, name) for name in own},
            origin=split.origin,
            source=source,
        )
        return Coreset(held, recipe)

    def export(self, path: str | Path, kind: str | None = None) -> Path:
        """Write ``path`` for other programs, in the format of its suffix or of ``kind`` (see ``attar.export``)."""
        from attar.export import export  # imported here, because it imports this module

        return export(self, path, kind)

    @staticmethod
    def load(path: str | Path, force: bool = False) -> Coreset:
        """Read a coreset; the original data is not needed. Everything is checked before it is used.

        Args:
            path: The file.
            force: Keep a recommended training or sampler of more than 100,000 steps, which is cut short otherwise,
                with a warning: a file may come from anybody.
        """
        tensors, header = read_tensors(path)
        if header.get("format") != FORMAT:
            raise other_format(path, header, "coreset", "attar reduce")
        try:
            recipe = TypeAdapter(Recipe).validate_json(header["recipe"])
            spec, rows = Spec.unpack(tensors, header["spec"]), tensors.get("rows")
            keys = _keys(rows, header.get("keys"))
            data = Data(tensors["x"], tensors["y"], tensors.get("weights"), spec, rows, keys)
            step_size = float(tensors["step_size"]) if "step_size" in tensors else None
            _check(data, tensors.get("indices"), step_size)
        except (KeyError, TypeError, ValueError, ValidationError, RuntimeError) as error:
            reason = " ".join(str(error).split())
            raise DamagedFile(path, f"is corrupt or incompatible ({reason})", "make or copy it again.") from error
        recipe = replace(recipe, cost=read_cost(path, data.fingerprint) or recipe.cost)
        extra = {name.removeprefix("extra."): t for name, t in tensors.items() if name.startswith("extra.")}
        return Coreset(data, recipe if force else capped(recipe, path), tensors.get("indices"), step_size, extra)


def warn_lost(where: str, lost: list[str], remedy: str) -> None:
    """Warn that some parts of a coreset are left out, and how to keep them."""
    if lost:
        warnings.warn(f"{where} leaves out the {' and the '.join(lost)}: {remedy}.", stacklevel=3)


def _keys(rows: Tensor | None, text: str | None) -> dict[int, str] | None:
    if text is None:
        return None
    names = parsed(text)
    if rows is None or not isinstance(names, list) or len(names) != len(rows):
        raise ValueError("keys must be one name per row")
    return dict(zip(rows.tolist(), map(str, names), strict=True))


def _check(data: Data, indices: Tensor | None, step_size: float | None) -> None:
    if not len(data) or not data.spec.element.fits(data.x):
        raise ValueError(f"x must hold at least one example of shape {data.shape}")
    if torch.bfloat16 in {part.dtype for part in (data.x, data.y, data.weights) if part is not None}:
        raise ValueError("examples, labels and weights must not be bfloat16")
    if isinstance(data.spec.element, Tokens) and not data.spec.element.knows(data.x):
        raise ValueError("tokens must be numbers of words in the vocabulary")
    classes = data.classes
    hard = data.y.ndim == 1 and data.y.dtype == torch.int64
    soft = data.y.ndim == 2 and data.y.is_floating_point() and data.y.shape[1] == classes
    if not (hard or soft) or (hard and not bool(((data.y >= 0) & (data.y < classes)).all())):
        raise ValueError(f"labels must be integers in 0..{classes - 1} or rows of {classes} numbers")
    if data.weights is not None and not are_weights(data.weights):
        raise ValueError("weights must be one non-negative number per example, and not all zero")
    for name, places in (("indices", indices), ("rows", data.rows)):
        if places is not None and (places.shape != (len(data),) or places.dtype != torch.int64):
            raise ValueError(f"{name} must be one integer per example")
    if step_size is not None and step_size <= 0:
        raise ValueError("the step size must be positive")
    data.spec.check()


def _require_mergeable(ours: Coreset, theirs: Coreset) -> None:
    a, b = ours.data.spec.element, theirs.data.spec.element
    if type(a) is not type(b) or a.shape != b.shape or (isinstance(a, Table) and a != b):
        what = "of tables with other columns" if a.shape == b.shape else f"of shapes {a.shape} and {b.shape}"
        raise AttarError(f"Examples {what} cannot be merged: reduce data of one kind.")
    for what, one, other in (
        ("samplers", ours.recipe.sampler, theirs.recipe.sampler),
        ("losses", ours.recipe.training.loss, theirs.recipe.training.loss),
        ("step sizes", ours.step_size, theirs.step_size),
        ("learnt rates", ours.recipe.sampler_options.get("rates"), theirs.recipe.sampler_options.get("rates")),
    ):
        if one != other:
            raise AttarError(
                f"These coresets are made for different {what}, {one} and {other}: merge coresets made for the same."
            )
