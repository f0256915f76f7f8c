"""Facility location in one pass, by sieve-streaming."""

from __future__ import annotations

from math import ceil, floor, log
from typing import NamedTuple

import torch
from pydantic import Field
from pydantic.dataclasses import dataclass
from torch import Tensor

from attar.core.forecast import Order
from attar.core.registry import selector
from attar.select.stream import Picked, Streaming, filled


class Sieves(NamedTuple):
    """All sieves, one for each guess of the optimum."""

    size: int
    references: Tensor  #: (r, h)
    reach: float  #: distance at which an example covers nothing of a reference
    largest: float  #: f of the best single example so far
    guesses: Tensor  #: (s,) int64, exponents of 1 + ε
    covers: Tensor  #: (s, r), how much of each reference is covered
    numbers: Tensor  #: (s, size) int64, picks; −1 where there are none
    gains: Tensor  #: (s, size)
    spares: Tensor  #: (at most 2 size,) int64


@selector(
    "sieve-streaming",
    about="facility location in one pass",
    choose="streams",
    takes="1 min",
    paper="Badanidiyuru, Mirzasoleiman, Karbasi & Krause, Streaming Submodular Maximization, KDD 2014",
    cost="a short training, one forward pass of the data, and n·r·(h + log(k)/ε) operations for r references",
)
@dataclass(frozen=True)
class Sieve(Streaming):
    r"""Cover random reference examples W by picks, :math:`f(S) = \sum_{w \in W} \max_{s \in S} (D - d_{ws})_+`.

    For every guess v of the optimum among the powers of 1 + ε between the best single example's value m and 2 k m, a
    sieve takes the example e if

    .. math:: f(S_v \cup \{e\}) - f(S_v) \ge \frac{v / 2 - f(S_v)}{k - |S_v|}

    and the best sieve at the end has at least ½ − ε of the best possible value. D is twice the largest distance of a
    reference to their mean. With as many references as examples, f is facility location on all of them; otherwise on a
    sample. Scores are the gains. Examples that no sieve took fill up the picks if there are fewer than k.
    """

    epsilon: float = Field(default=0.1, gt=0, lt=0.5, description="ε: the value is at least ½ − ε of the best possible")
    sample: int = Field(default=500, ge=1, description="random reference examples that picks cover")

    @property
    def grows(self) -> Order:
        return Order(since=self.sample)

    @property
    def wanted(self) -> int:
        return self.sample

    def begin(self, references: Tensor, size: int) -> Sieves:
        reach = 2 * float((references - references.mean(0)).norm(dim=1).max())
        none = torch.zeros(0, dtype=torch.int64, device=references.device)
        empty = references.new_zeros(0, size)
        return Sieves(
            size, references, reach, 0.0, none, references.new_zeros(0, len(references)), empty.long(), empty, none
        )

    def feed(self, state: Sieves, features: Tensor, numbers: Tensor) -> Sieves:
        covers = (state.reach - torch.cdist(features, state.references)).clamp_(min=0)
        best = torch.cat([features.new_tensor([state.largest]), covers.sum(1)]).cummax(0).values[1:]
        state = self._grown(state._replace(largest=float(best[-1])))
        for row, guess in enumerate(state.guesses.tolist()):
            value = (1 + self.epsilon) ** guess
            first = int((2 * state.size * best >= value).float().argmax())  # before, the guess was too large
            self._through(state, row, value, covers[first:], numbers[first:])
        return state._replace(spares=torch.cat([state.spares, numbers])[: 2 * state.size])

    def finish(self, state: Sieves) -> Picked:
        row = int(state.covers.sum(1).argmax()) if len(state.covers) else 0
        taken = state.numbers[row] if len(state.numbers) else state.numbers.new_zeros(0)
        count = int((taken >= 0).sum())
        chosen = filled(taken[:count].tolist(), state.spares.tolist(), state.size)
        gains = state.gains[row, :count] if count else state.covers.new_zeros(0)
        scores = torch.cat([gains, gains.new_zeros(len(chosen) - count)])
        return Picked(torch.tensor(chosen, device=state.spares.device), scores)

    def _grown(self, state: Sieves) -> Sieves:
        """Drop the guesses that are below the best single example, and add those that are now possible."""
        if not state.largest:
            return state
        base, low = log(1 + self.epsilon), log(state.largest)
        exponents = range(ceil(low / base), floor((low + log(2 * state.size)) / base) + 1)
        old = {guess: row for row, guess in enumerate(state.guesses.tolist())}
        wanted = torch.tensor(list(exponents), device=state.guesses.device, dtype=torch.int64)
        places = [old.get(guess, -1) for guess in exponents]

        def moved(tensor: Tensor, blank: float) -> Tensor:
            new = tensor.new_full((len(places), tensor.shape[1]), blank)
            for row, place in enumerate(places):
                if place >= 0:
                    new[row] = tensor[place]
            return new

        return state._replace(
            guesses=wanted,
            covers=moved(state.covers, 0),
            numbers=moved(state.numbers, -1),
            gains=moved(state.gains, 0),
        )

    @staticmethod
    def _through(state: Sieves, row: int, value: float, covers: Tensor, numbers: Tensor) -> None:
        """Let examples through one sieve, in order."""
        taken, start = int((state.numbers[row] >= 0).sum()), 0
        while taken < state.size and start < len(covers):
            cover = state.covers[row]
            gains = (covers[start:] - cover).clamp_(min=0).sum(1)
            good = (gains >= (value / 2 - float(cover.sum())) / (state.size - taken)).nonzero()
            if not len(good):
                return
            place = int(good[0])
            state.numbers[row, taken], state.gains[row, taken] = numbers[start + place], gains[place]
            state.covers[row] = torch.maximum(cover, covers[start + place])
            taken, start = taken + 1, start + place + 1
