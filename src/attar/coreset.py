"""The artifact: a few examples with all that is needed to train on them again, in one file."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass as validated
from torch import Tensor
from torch.utils.data import TensorDataset

from attar.core.cost import Cost
from attar.core.errors import AttarError
from attar.core.files import read_tensors, write_tensors
from attar.data.data import Data, Domain
from attar.nets.train import Training

FORMAT = "attar-coreset-1"


@validated(frozen=True, config=ConfigDict(extra="forbid"))
class Recipe:
    """How a coreset was made, and how to train on it."""

    method: str
    per_class: int
    seed: int
    data: str  #: name of the data set
    fingerprint: str  #: of the training data it stands for
    network: str
    version: str  #: of this library
    options: dict[str, Any] = Field(default_factory=dict)  #: hyper-parameters of the method
    descent: dict[str, Any] = Field(default_factory=dict)  #: the driver's, for methods that learn
    training: Training = Training()  #: what a user of the coreset should train with
    experts: str | None = None  #: identity of the trajectories it was made with, if any were
    validation: str | None = None  #: fingerprint of the held-out examples that its method looked at, if it did
    sampler: str = "ensemble"  #: what a user of the coreset should infer with
    sampler_options: dict[str, Any] = Field(default_factory=dict)
    cost: Cost = Field(default_factory=lambda: Cost())  #: of making it


@dataclass(frozen=True)
class Coreset:
    """Few examples that stand for many.

    Args:
        data: The examples, scaled as ``data.domain.scaling`` says, with labels and weights.
        recipe: How they were made.
        indices: Where they stand in the training data, for selected examples.
        step_size: The learning rate that was learnt with them, if one was.
    """

    data: Data
    recipe: Recipe
    indices: Tensor | None = None
    step_size: float | None = None

    def __len__(self) -> int:
        return len(self.data)

    @property
    def training(self) -> Training:
        """How to train on it: the recipe's schedule, with the learnt step size where one was learnt."""
        recorded = self.recipe.training
        return recorded if self.step_size is None else replace(recorded, lr=self.step_size)

    def pixels(self) -> Tensor:
        """The examples in the units of the original data (images in [0, 1])."""
        return self.data.domain.scaling.invert(self.data.x)

    def numpy(self) -> tuple[NDArray[np.float32], NDArray[Any]]:
        """Flat scaled examples and class labels, as a scikit-learn estimator's ``fit`` takes them."""
        return self.data.x.flatten(1).cpu().numpy(), self.data.hard.cpu().numpy()

    def dataset(self) -> TensorDataset:
        """Scaled examples and labels, as a plain PyTorch ``DataLoader`` takes them."""
        return TensorDataset(self.data.x, self.data.y)

    def to(self, device: torch.device | str) -> Coreset:
        """A copy on another device."""
        return replace(self, data=self.data.to(device))

    def save(self, path: str | Path) -> None:
        """Write one safetensors file; what stood at ``path`` is replaced only by a whole new file."""
        scaling, domain = self.data.domain.pack()
        tensors = {"x": self.data.x, "y": self.data.y, **scaling}
        optional = {"weights": self.data.weights, "indices": self.indices}
        tensors |= {name: tensor for name, tensor in optional.items() if tensor is not None}
        if self.step_size is not None:
            tensors["step_size"] = torch.tensor(self.step_size, dtype=torch.float64)
        header = {
            "format": FORMAT,
            "recipe": TypeAdapter(Recipe).dump_json(self.recipe).decode(),
            "domain": domain,
        }
        write_tensors(path, tensors, header)

    def export(self, path: str | Path, kind: str | None = None) -> Path:
        """Write it for other tools: arrays, a table, images or a Hugging Face data set (see ``attar.export``)."""
        from attar.export import export  # it stands above this module, with the report whose pictures it writes

        return export(self, path, kind)

    @staticmethod
    def load(path: str | Path) -> Coreset:
        """Read a coreset; the original data is not needed. Everything is checked before it is used."""
        tensors, header = read_tensors(path)
        if header.get("format") != FORMAT:
            raise AttarError(f"{path} is not a coreset of this library: make one with `attar reduce`.")
        try:
            recipe = TypeAdapter(Recipe).validate_json(header["recipe"])
            domain = Domain.unpack(tensors, header["domain"])
            data = Data(tensors["x"], tensors["y"], tensors.get("weights"), domain)
            step_size = float(tensors["step_size"]) if "step_size" in tensors else None
            _check(data, tensors.get("indices"), step_size)
        except (KeyError, TypeError, ValueError, ValidationError, RuntimeError) as error:
            reason = " ".join(str(error).split())
            raise AttarError(f"{path} was changed after it was written ({reason}): make or copy it again.") from error
        return Coreset(data, recipe, tensors.get("indices"), step_size)


def _check(data: Data, indices: Tensor | None, step_size: float | None) -> None:
    if not len(data) or not data.x.is_floating_point() or data.x.ndim not in (2, 4):
        raise ValueError("x must hold at least one float example")
    classes = data.classes
    hard = data.y.ndim == 1 and data.y.dtype == torch.int64
    soft = data.y.ndim == 2 and data.y.is_floating_point() and data.y.shape[1] == classes
    if not (hard or soft) or (hard and not bool(((data.y >= 0) & (data.y < classes)).all())):
        raise ValueError(f"labels must be integers in 0..{classes - 1} or rows of {classes} numbers")
    if data.weights is not None and not _are_weights(data.weights):
        raise ValueError("weights must be one non-negative number an example, and not all zero")
    if indices is not None and (indices.shape != (len(data),) or indices.dtype != torch.int64):
        raise ValueError("indices must be one integer an example")
    if step_size is not None and step_size <= 0:
        raise ValueError("the step size must be positive")
    scaled = data.domain.scaling.apply(data.x[:1])
    if scaled.shape != data.x[:1].shape or not bool(torch.isfinite(scaled).all()):
        raise ValueError("the scaling is for examples of another shape")


def _are_weights(weights: Tensor) -> bool:
    return weights.ndim == 1 and weights.is_floating_point() and bool((weights >= 0).all() & (weights.sum() > 0))
