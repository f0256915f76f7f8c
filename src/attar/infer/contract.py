"""The result of inference: draws of network parameters, and predictions averaged over them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from pydantic import TypeAdapter
from torch import Generator, Tensor
from torch.nn.functional import linear

from attar.core.errors import AttarError, DamagedFile, other_format
from attar.core.files import parsed, read_tensors, write_tensors
from attar.core.method import Method
from attar.data import Data, Spec, Table
from attar.data.formats.memory import is_frame, rows_of
from attar.data.split import Origin
from attar.infer.exchange import to_arviz
from attar.infer.head import Heads, mean_field
from attar.infer.separate import require_separate
from attar.nets import Network, in_parts, network
from attar.nets.train import Training

FORMAT = "attar-posterior-2"
_ORIGIN: TypeAdapter[Origin | None] = TypeAdapter(Origin | None)


class Posterior(Protocol):
    """A distribution over network parameters, with sampling and the posterior predictive."""

    @property
    def network(self) -> Network: ...

    @property
    def spec(self) -> Spec: ...

    def sample(self, n: int, gen: Generator) -> Tensor: ...

    def predict(self, x: Tensor) -> Tensor: ...

    def to(self, device: torch.device | str) -> Posterior: ...


class Sampler(Method):
    """A method that infers a posterior: a frozen dataclass of hyper-parameters with ``infer``."""

    trains: ClassVar[bool] = True  #: whether it trains networks, at the learning rate of the training settings

    def infer(
        self, data: Data, network: Network, training: Training, draws: int, gen: Generator, start: Tensor | None = None
    ) -> Draws:
        """Draw parameter vectors; chains and trainings start from the prior, or from rows of ``start``."""
        raise TypeError(f"{type(self).__name__} must define infer")


@dataclass(frozen=True, repr=False)
class Draws:
    r"""A posterior as a set of parameter vectors; predictions are averaged over them.

    .. math:: p(y \mid x) = \tfrac1S \sum_s \mathrm{softmax} f_{\theta_s}(x)
    """

    network: Network  #: whose parameters they are
    theta: Tensor  #: (draws, p)
    spec: Spec  #: of the examples that it predicts
    notes: Mapping[str, Any] = field(default_factory=dict)  #: how it was made, and diagnostics, as plain values
    chunk: int = 1024  #: inputs per forward pass at most; fewer for a large network on the CPU
    heads: Heads | None = None  #: Gaussian last layers with means in theta; averaged over in closed form
    origin: Origin | None = None  #: how to load the data again; None where it was given as arrays

    def sample(self, n: int, gen: Generator) -> Tensor:
        """``n`` of the draws, by ``gen`` with replacement; a Gaussian last layer is sampled for each."""
        index = torch.randint(len(self.theta), (n,), generator=gen, device=gen.device).to(self.theta.device)
        theta = self.theta[index]
        if self.heads is not None:
            place = self.network.head_index().to(theta.device)
            for row, draw in zip(theta, index.tolist(), strict=True):
                row[place] = self.heads.weight(draw, gen).to(row)
        return theta

    def logits(self, draw: int, x: Tensor) -> Tensor:
        """Logits of draw number ``draw`` at ``x``; for a Gaussian last layer, their softmax is the average over it."""
        theta = self.theta[draw]
        if self.heads is None:
            return self.network(theta, x)
        features = self.network.features(theta, x)
        mean = linear(features, *self.network.head(theta))
        return mean_field(mean, self.heads.variance(draw, features))

    @torch.no_grad()
    def predict(self, x: Tensor) -> Tensor:
        """Averaged class probabilities ``(n, classes)`` in float64, for examples ``x`` that are already transformed."""
        return torch.cat([self._average(part) for part in in_parts(self.network, x, self.chunk)])

    def _average(self, x: Tensor) -> Tensor:
        total = torch.zeros(len(x), self.network.classes, dtype=torch.float64, device=x.device)
        for draw in range(len(self.theta)):
            total += self.logits(draw, x).softmax(1).double()
        return total / total.sum(1, keepdim=True)

    def predict_proba(self, x: ArrayLike) -> NDArray[np.float64]:
        """Class probabilities of examples ``x`` in original units: an array, a tensor or a DataFrame.

        For a model of a table, the columns of a DataFrame are found by name and may hold categories, dates and gaps.
        """
        element = self.spec.element
        if isinstance(element, Table) and is_frame(x):
            stored = rows_of(x, element)
        else:
            stored = _numbers(x)
        if not element.fits(stored.float()):
            raise AttarError(f"The posterior is for examples of shape {self.network.shape}, got {tuple(stored.shape)}.")
        scaled = self.spec.transform.apply(stored.to(self.theta.device, torch.float32))
        probabilities: NDArray[np.float64] = self.predict(scaled).cpu().numpy()
        return probabilities

    def to_arviz(self, data: Data | None = None) -> Any:
        """An ``arviz.InferenceData`` for diagnostics and plots (extra ``arviz``).

        The group ``posterior`` has ``theta`` with one chain, or the sampler's chains, of which all have as many draws
        as the shortest; ``sample_stats`` has minus the potential of chains as ``lp``. Parameters of networks have many
        equivalent arrangements, so judge chains by their predictions: give ``data``.

        Args:
            data: Examples to predict, transformed as the coreset's are, such as ``split.val``: adds their class
                probabilities as ``p`` in ``posterior``, and ``log_likelihood`` and ``observed_data`` of their labels.
        """
        return to_arviz(self, data)

    def to(self, device: torch.device | str) -> Draws:
        """A copy on another ``device``."""
        heads = None if self.heads is None else Heads(*(part.to(device) for part in self.heads))
        return replace(self, theta=self.theta.to(device), heads=heads)

    def __repr__(self) -> str:
        made = f" by {self.notes['sampler']}" if "sampler" in self.notes else ""
        return f"Draws({len(self.theta)} of {self.network.name} ({self.network.size:,} parameters){made})"

    def save(self, path: str | Path) -> None:
        """Write one safetensors file at ``path``."""
        scaling, spec = self.spec.pack()
        header = {"format": FORMAT, "spec": spec, "network": self.network.name, "notes": json.dumps(dict(self.notes))}
        header["origin"] = _ORIGIN.dump_json(self.origin).decode()
        heads = {} if self.heads is None else {f"heads.{k}": v for k, v in self.heads._asdict().items()}
        write_tensors(path, {"theta": self.theta, **scaling, **heads}, header)

    @staticmethod
    def load(path: str | Path, own: Network | None = None) -> Draws:
        """Read what ``save`` wrote to ``path``; for a posterior of your own module, pass its network as ``own``."""
        tensors, header = read_tensors(path)
        if header.get("format") != FORMAT:
            raise other_format(path, header, "posterior", "attar infer")
        try:
            spec = Spec.unpack(tensors, header["spec"])
            built = own or network(header["network"], spec)
            theta = tensors["theta"]
            notes = parsed(header["notes"], finite=False)
            origin = _ORIGIN.validate_json(header.get("origin", "null"))
            named = [f"heads.{name}" for name in Heads._fields]
            heads = Heads(*(tensors[name] for name in named)) if named[0] in tensors else None
            _check(theta, built, spec, heads)
        except (KeyError, TypeError, ValueError, RuntimeError) as error:
            reason = " ".join(str(error).split())
            raise DamagedFile(path, f"is corrupt or incompatible ({reason})", "make it again.") from error
        require_separate(built)
        return Draws(built, theta, spec, notes, heads=heads, origin=origin)


def _check(theta: Tensor, network: Network, spec: Spec, heads: Heads | None) -> None:
    if theta.ndim != 2 or theta.shape[1] != network.size or not len(theta) or theta.dtype != torch.float32:
        raise ValueError(f"{network.name} has {network.size} parameters, the file {theta.dtype}{tuple(theta.shape)}")
    if len(spec.target) != network.classes:
        raise ValueError(f"{network.classes} classes with {len(spec.target)} names")
    spec.check()
    if heads is not None:
        if not all(part.dtype == torch.float64 and bool(torch.isfinite(part).all()) for part in heads):
            raise ValueError("a part of the last layers is not finite, or not float64")
        draws, n, h = heads.phi.shape
        found = tuple(tuple(part.shape) for part in heads)
        features = network.head_index().shape[1]
        wanted = ((len(theta), n, features), (draws, n, n), (draws, n, network.classes), (h,), (), (), ())
        if found != wanted or float(heads.rho) <= 0 or float(heads.ridge) <= 0:
            raise ValueError(f"last layers of shapes {wanted} are needed, got {found}")


def _numbers(x: ArrayLike) -> Tensor:
    """An array or tensor of numbers."""
    try:
        return x if isinstance(x, Tensor) else torch.tensor(np.asarray(x, dtype=np.float32))
    except (ValueError, TypeError) as error:
        raise AttarError(f"Examples to predict must be numbers ({error}): give an array of them.") from error
