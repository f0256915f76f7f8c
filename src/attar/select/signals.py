"""What methods read off labels, features and logits: residuals, losses, gradients and curvature."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from functools import cached_property

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, softmax

from attar.select.keep import SelectionWarning
from attar.select.outer import Outer
from attar.select.scoring import Look, logit_gradients


class Signals(ABC):
    """Everything that follows from the labels, features and logits of examples; each is computed once, if needed."""

    look = Look()  #: how the network was trained, and which gradients are taken

    @property
    @abstractmethod
    def y(self) -> Tensor:
        """Labels, hard or soft."""

    @property
    @abstractmethod
    def features(self) -> Tensor:
        """Inputs of the last layer, ``(n, h)``."""

    @property
    @abstractmethod
    def logits(self) -> Tensor:
        """Outputs of the network, ``(n, classes)``."""

    @property
    @abstractmethod
    def bias(self) -> bool:
        """Whether the last layer has a bias."""

    @property
    def hard(self) -> Tensor:
        """The class of every example, ``(n,)``, also where labels are soft."""
        y = self.y
        return y.argmax(1) if y.ndim == 2 else y

    @cached_property
    def probabilities(self) -> Tensor:
        """Softmax of the logits, ``(n, classes)``."""
        return softmax(self.logits, 1)

    @cached_property
    def targets(self) -> Tensor:
        """Labels as probabilities, ``(n, classes)``."""
        y, z = self.y, self.logits
        return torch.eye(z.shape[1], dtype=z.dtype, device=z.device)[y] if y.ndim == 1 else y.to(z)

    @cached_property
    def residuals(self) -> Tensor:
        """Gradients of the losses with respect to the logits, ``(n, classes)``: softmax minus label, if exact."""
        return logit_gradients(self.logits, self.targets, self.look.gradient)

    @cached_property
    def losses(self) -> Tensor:
        """The cross-entropy of every example, ``(n,)``."""
        return cross_entropy(self.logits, self.y, reduction="none")

    @cached_property
    def gradients(self) -> Outer:
        """Gradients of the losses with respect to the last layer; features if the network is ``fitted``."""
        return self.slopes(self.fitted)

    def slopes(self, fitted: bool) -> Outer:
        """Residuals ⊗ [h, 1]; if ``fitted``, only features, because all residuals are zero."""
        return Outer(torch.ones_like(self.residuals[:, :1]) if fitted else self.residuals, self.features, self.bias)

    @cached_property
    def fitted(self) -> bool:
        """Whether every gradient is zero; warns if so."""
        tiny = torch.finfo(self.residuals.dtype).eps
        fitted = float(self.residuals.abs().max()) <= tiny or not float(self.slopes(False).squares.max())
        if fitted:
            warnings.warn(
                "The network fits every example perfectly, so all gradients are zero and features are used instead: "
                "train the scoring network for fewer steps.",
                SelectionWarning,
                stacklevel=2,
            )
        return fitted

    @cached_property
    def curvatures(self) -> Outer:
        """Diagonals of the Hessians of the losses with respect to the last layer: p(1 − p) ⊗ [h², 1]."""
        return Outer(self.probabilities * (1 - self.probabilities), self.features.square(), self.bias)
