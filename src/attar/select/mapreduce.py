"""Selection from many examples: from parts first, then from the union of the picks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Generator, Tensor

from attar.core.errors import AttarError
from attar.core.forecast import Order
from attar.core.method import Needs
from attar.select.contract import Selection, Selector
from attar.select.view import View


@dataclass(frozen=True)
class MapReduce(Selector):
    r"""Split the examples at random into parts, select from each, and select again from the union of the picks.

    This is repeated until the union fits into one part, so time is linear in n and memory does not grow with it.

    There is a guarantee for k-center: after :math:`r` rounds of parts, the radius is at most :math:`2 (r + 1)` times
    the best possible (4 after one round, Malkomes et al. 2015), against 2 without parts. Methods that rank examples by
    scores of the whole view lose nothing. For facility location (craig, adacore, lcmat-s) and the others there is no
    guarantee: the bound of :math:`\tfrac12 (1 - 1/e)` for submodular objectives (Barbosa et al. 2015) needs every
    selection to be evaluated on all examples, and the better of the union's and of the best part's to be used. Here
    parts and union are evaluated on themselves, which makes time linear, and the union's is used. Weights are those
    within the union, scaled to sum to n.

    Args:
        selector: The method that selects from each part and from the union.
        part: Examples per part; more than twice the number of picks.
    """

    needs: ClassVar[Needs] = Needs(labels=False)  # the wrapped method says what it needs

    selector: Selector
    part: int = 4096

    @property
    def grows(self) -> Order:
        return Order(picks=self.selector.grows.picks, since=2 * self.part)

    def select(self, view: View, size: int, gen: Generator) -> Selection:
        if self.part <= 2 * size:
            raise AttarError(f"Parts of {self.part} are too small to pick {size} from: ask for parts of {4 * size}.")
        left = torch.arange(len(view), device=view.whole.data.device)
        while len(left) > self.part:
            left = torch.cat([self._of(view, part, size, gen).indices for part in self._parts(left, gen)])
        last = self._of(view, left.sort().values, size, gen)
        if last.weights is None:
            return last
        return last._replace(weights=last.weights * (len(view) / len(left)))  # scaled to all examples

    def seen(self, view: View) -> View:
        return self.selector.seen(view)

    def _parts(self, left: Tensor, gen: Generator) -> list[Tensor]:
        mixed = left[torch.randperm(len(left), generator=gen, device=gen.device).to(left.device)]
        return [part.sort().values for part in mixed.tensor_split(-(-len(left) // self.part))]

    def _of(self, view: View, part: Tensor, size: int, gen: Generator) -> Selection:
        inner = self.selector.select(view.part(part), size, gen)
        return inner._replace(indices=part[inner.indices])
