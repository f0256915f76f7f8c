"""Nearest neighbours."""

from __future__ import annotations

from typing import ClassVar

import torch
from pydantic import Field
from pydantic.dataclasses import dataclass
from torch import Generator, Tensor

from attar.core.registry import sampler
from attar.data import Data
from attar.data.data import soft
from attar.infer.contract import Draws, Sampler
from attar.nets import Network
from attar.nets import network as build_network
from attar.nets.train import Training


@sampler(
    "knn",
    about="nearest neighbours, soft labels",
    choose="without a network",
    takes="1 s",
    paper="Sucholutsky & Schonlau, Soft-Label Dataset Distillation and Text Dataset Distillation, IJCNN 2021",
    cost="distances between the examples of the coreset and those that are predicted",
)
@dataclass(frozen=True)
class KNN(Sampler):
    """Predict by the labels of the k nearest examples of the coreset; no network is trained and nothing is random.

    The one draw holds the examples and labels themselves, as the parameters of a classifier (``attar.nets.neighbours``)
    that takes the place of the network. Weights multiply the labels.
    """

    k: int = Field(default=1, ge=1, description="neighbours that vote; all examples if there are fewer")

    trains: ClassVar[bool] = False

    def infer(
        self, data: Data, network: Network, training: Training, draws: int, gen: Generator, start: Tensor | None = None
    ) -> Draws:
        votes = build_network(f"knn-k{min(self.k, len(data))}n{len(data)}", data.spec)
        labels = soft(data.y, data.classes) * data.relative[:, None]
        theta = torch.cat([data.x.flatten(), labels.to(data.x).flatten()])
        return Draws(votes, theta[None], data.spec)
