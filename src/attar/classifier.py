"""A scikit-learn classifier that learns from a coreset of its training data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from attar.condense.contract import Condenser
from attar.core import registry
from attar.core.errors import AttarError, require
from attar.data import Data, Spec
from attar.data.transform import Standard
from attar.infer import infer
from attar.nets import Network
from attar.nets.train import Training
from attar.reduce import reduce
from attar.select.budget import BALANCED
from attar.select.contract import Selector

require("sklearn", "sklearn")

from sklearn.base import BaseEstimator, ClassifierMixin  # noqa: E402
from sklearn.utils import check_random_state  # noqa: E402
from sklearn.utils.multiclass import check_classification_targets  # noqa: E402
from sklearn.utils.validation import check_is_fitted, validate_data  # noqa: E402


class CoresetClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    r"""Reduce the training data to a coreset, then predict with networks trained on that alone.

    .. math:: p(y \mid x) = \tfrac1S \sum_s \mathrm{softmax} f_{\theta_s}(x)

    The networks are an ensemble, or what the method recommends for its coresets. Features are standardised first.

    Args:
        method: Reduction method: a registered name (see ``attar.methods``) or a method object.
        per_class: Examples to keep or learn per class; at most as many as the smallest class has, if they are balanced.
        budget: How classes share the examples, as for ``attar.reduce``: ``balanced``, ``proportional``, ``minimum`` or
            ``minimum=5``.
        options: Hyper-parameters of the method, if it is given by name.
        descent: Optimiser settings (steps, lr, ...) that differ from the method's own, for methods that learn.
        network: A name, a ``Network`` or a module factory; by default a small one for examples of this shape.
        draws: Networks in the ensemble.
        steps: Training steps (of Adam) for each network.
        lr: Learning rate of these steps.
        image_shape: ``(channels, height, width)``, if every row of X is a flattened image.
        random_state: Random seed or state.
        device: Where to reduce and train, such as ``cuda``; predictions are made on the CPU, in float64.

    Attributes:
        coreset_: The ``Coreset``, to save, export or inspect.
        posterior_: The ensemble, as ``attar.infer`` gives it.
        classes_: Class labels as ``y`` had them.
        n_features_in_: Columns of X.
    """

    def __init__(
        self,
        method: str | Selector | Condenser = "uniform",
        per_class: int = 10,
        *,
        budget: str = BALANCED,
        options: Mapping[str, Any] | None = None,
        descent: Mapping[str, Any] | None = None,
        network: str | Network | Callable[[], nn.Module] | None = None,
        draws: int = 3,
        steps: int = 200,
        lr: float = 0.01,
        image_shape: tuple[int, int, int] | None = None,
        random_state: int | np.random.RandomState | None = 0,
        device: torch.device | str | None = None,
    ) -> None:
        self.method = method
        self.per_class = per_class
        self.budget = budget
        self.options = options
        self.descent = descent
        self.network = network
        self.draws = draws
        self.steps = steps
        self.lr = lr
        self.image_shape = image_shape
        self.random_state = random_state
        self.device = device

    def fit(self, X: ArrayLike, y: ArrayLike) -> CoresetClassifier:
        """Reduce the rows of ``X`` with classes ``y`` to ``coreset_``, and infer ``posterior_`` from it."""
        rows, targets = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(targets)
        self.classes_, labels, counts = np.unique(targets, return_inverse=True, return_counts=True)
        if len(counts) < 2:
            raise AttarError("y holds only 1 class: give examples of at least two.")
        examples = self._examples(rows)
        scaling = Standard.fit(examples)
        spec = Spec.of(examples.shape[1:], tuple(map(str, self.classes_)), scaling)
        data = Data(scaling.apply(examples).float(), torch.tensor(labels), spec=spec)
        training = {"steps": self.steps, "lr": self.lr, "optimiser": "adam"}
        reducing, inferring = map(int, check_random_state(self.random_state).randint(2**31 - 1, size=2))
        self.coreset_ = reduce(
            data,
            self.method,
            per_class=min(self.per_class, int(counts.min())) if self.budget == BALANCED else self.per_class,
            budget=self.budget,
            seed=reducing,
            network=self.network,
            options=self.options,
            descent=self.descent,
            training=registry.make(Training, training, "CoresetClassifier"),
            device=self.device,
        )
        self.posterior_ = infer(self.coreset_, draws=self.draws, seed=inferring, network=self.network)
        return self

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Class probabilities ``(n, classes)`` of the rows of ``X``, averaged over the ensemble."""
        check_is_fitted(self)
        rows = validate_data(self, X, dtype=np.float64, reset=False)
        # In float64 the prediction of a row does not depend on the rows beside it, down to the seventh digit.
        exact = self.posterior_.to("cpu")
        exact = replace(exact, theta=exact.theta.double())
        probabilities: NDArray[np.float64] = exact.predict(exact.spec.transform.apply(self._examples(rows))).numpy()
        return probabilities

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The most likely class of each row of ``X``."""
        probabilities = self.predict_proba(X)
        predicted: NDArray[Any] = self.classes_[probabilities.argmax(1)]
        return predicted

    def _examples(self, rows: NDArray[np.float64]) -> Tensor:
        x = torch.tensor(rows)
        if self.image_shape is None:
            return x
        if prod(self.image_shape) != x.shape[1]:
            raise AttarError(
                f"X has {x.shape[1]} columns, which does not fit image_shape={self.image_shape}: change image_shape."
            )
        return x.reshape(len(x), *self.image_shape)
