"""Selection from many examples: from parts first, then from what the parts gave."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from attar.errors import AttarError
from attar.select.contract import Selection, Selector
from attar.select.view import View


@dataclass(frozen=True)
class MapReduce:
    r"""Cut the examples at random into parts, select from each, and select again from the union of what was selected.

    Rounds go on until the union fits into one part, so time grows linearly with n and memory not at all. What is lost
    is bounded where the method is greedy. For k-center, the radius after one such round is at most 4 times the best
    possible (Malkomes et al. 2015), against 2 for the whole at once. For a monotone submodular objective the value is
    on average at least :math:`\tfrac12 (1 - 1/e)` of the best possible, if the better of the union's and the best
    part's selection is taken (Barbosa et al. 2015); facility location is judged here by the examples of the union,
    which stand for all as a random sample does.

    Args:
        selector: What selects from each part and at last.
        part: Examples a part; more than twice the size asked for.
    """

    selector: Selector
    part: int = 4096

    def select(self, view: View, size: int, gen: Generator) -> Selection:
        if self.part <= 2 * size:
            raise AttarError(f"Parts of {self.part} are too small to pick {size} from: ask for parts of {4 * size}.")
        left = torch.arange(len(view), device=view.data.x.device)
        while len(left) > self.part:
            left = torch.cat([self._of(view, part, size, gen).indices for part in self._parts(left, gen)])
        last = self._of(view, left.sort().values, size, gen)
        if last.weights is None:
            return last
        return last._replace(weights=last.weights * (len(view) / last.weights.sum()))  # they stand for all again

    def _parts(self, left: Tensor, gen: Generator) -> list[Tensor]:
        mixed = left[torch.randperm(len(left), generator=gen, device=gen.device).to(left.device)]
        return [part.sort().values for part in mixed.tensor_split(-(-len(left) // self.part))]

    def _of(self, view: View, part: Tensor, size: int, gen: Generator) -> Selection:
        inner = self.selector.select(view.part(part), size, gen)
        return inner._replace(indices=part[inner.indices])
