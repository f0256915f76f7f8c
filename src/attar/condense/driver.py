"""The one condensation loop: an iterator of steps that observers wrap."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Generator, Tensor, nn

from attar.condense.contract import Condenser, Descent, Task
from attar.condense.source import Source
from attar.condense.updates import Updates
from attar.core.cost import Cost
from attar.core.errors import AttarError, DamagedFile, Diverged
from attar.core.files import parsed, read_tensors, write_tensors
from attar.data import Data


class Step(NamedTuple):
    """One finished update; ``run`` does not change while an observer handles it."""

    number: int  #: updates done so far, from 1
    total: int
    loss: float
    metrics: dict[str, float]
    run: Condensation


class OtherRecipe(DamagedFile):
    """A checkpoint is intact, and of another run."""


class Condensation:
    """Gradient descent on a method's objective: iterate to run it, or call ``step`` from a loop of your own.

    ``save`` writes everything that the next step depends on, so a resumed run gives exactly the same result.

    Args:
        method: The method.
        task: Data, network and experts.
        source: What is learnt; ``method.source(start, gen)`` is the method's own.
        descent: Optimiser settings.
        gen: Random generator of all steps.
        identity: A checkpoint is resumed only by a run of the same identity.
    """

    def __init__(
        self, method: Condenser, task: Task, source: Source, descent: Descent, gen: Generator, identity: str = ""
    ) -> None:
        self.method, self.task, self.source, self.descent, self.gen = method, task, source, descent, gen
        self.identity = identity
        self.number = 0
        self.cost = Cost()  #: cost of all steps so far, including those before an interruption
        self.scores: dict[str, float] = {}  #: the latest scores of the examples, which observers compute now and then
        self.first = self.examples  #: before the first step, also of a resumed run
        _require_fitting(self.first, task.data)
        self.updates = Updates(source, descent)
        self.state = method.init(task, gen)
        self._settled = gen.get_state()

    @property
    def examples(self) -> Data:
        """The current synthetic examples."""
        with torch.no_grad():
            syn = self.source()
            return Data(syn.x.detach().clone(), syn.y.detach().clone(), spec=syn.spec)

    @property
    def scalars(self) -> dict[str, Any]:
        """The numbers learnt with them, as they are now: a float or a list of floats by name."""
        with torch.no_grad():
            return {name: value.tolist() for name, value in self.source().scalars.items()}

    def __iter__(self) -> Iterator[Step]:
        while self.number < self.descent.steps:
            yield self.step()

    def step(self) -> Step:
        """One update of the examples."""
        wall, cpu = time.perf_counter(), time.process_time()
        self.source.renew(self.number)
        loss = self.method.loss(self.source(), self.state, self.task, self.gen)
        self.source.zero_grad()
        loss.value.backward()
        value, elsewhere = self._summed(loss.value.detach(), time.process_time() - cpu)
        norm = self._gradient_norm()
        if not bool(torch.isfinite(value) & torch.isfinite(norm)):
            learnt = "".join(f", {name.replace('_', ' ')} {_short(value)}" for name, value in self.scalars.items())
            raise Diverged(
                f"Step {self.number + 1}: the loss is {value.item():g} and its gradient has norm {norm.item():g}"
                f"{learnt}; try a learning rate below {self.descent.lr:g} or a clip."
            )
        self.updates.step(self.number)
        self.state, self.number, self._settled = loss.state, self.number + 1, self.gen.get_state()
        metrics = {name: float(value) for name, value in loss.metrics.items()}
        self.cost += Cost(time.perf_counter() - wall, time.process_time() - cpu + elsewhere)
        return Step(self.number, self.descent.steps, value.item(), metrics, self)

    def _summed(self, value: Tensor, seconds: float) -> tuple[Tensor, float]:
        """The loss of all processes, with their gradients summed too, and the processor seconds of the others."""
        share, learnt = self.task.share, [p for p in self.source.parameters() if p.requires_grad]
        if share.size == 1:
            return value, 0.0
        slopes = [torch.zeros_like(p) if p.grad is None else p.grad for p in learnt]
        rest = value.new_tensor([float(value), seconds])
        total = share.total(torch.cat([*(slope.flatten() for slope in slopes), rest]))
        for p, slope in zip(learnt, total[:-2].split([p.numel() for p in learnt]), strict=True):
            p.grad = slope.view_as(p).to(p)
        return total[-2], float(total[-1]) - seconds

    def _gradient_norm(self) -> Tensor:
        return nn.utils.clip_grad_norm_(self.source.parameters(), self.descent.clip or float("inf"))

    def save(self, path: Path) -> None:
        """Write a checkpoint of the last finished step."""
        tensors = {f"source.{name}": tensor for name, tensor in self.source.state_dict().items()}
        tensors |= {f"optimiser.{name}": tensor for name, tensor in self.updates.tensors().items()}
        tensors |= {f"state.{name}": torch.as_tensor(value) for name, value in self.state._asdict().items()}
        tensors["gen"] = self._settled
        scores = {name: repr(float(score)) for name, score in self.scores.items()}  # text, as JSON has no NaN
        header = {"number": self.number, "wall": self.cost.wall, "cpu": self.cost.cpu, "scores": scores}
        write_tensors(path, tensors, {"identity": self.identity, "progress": json.dumps(header)})

    def resume(self, path: Path) -> None:
        """Resume from a checkpoint.

        Raises ``OtherRecipe`` if it is of another run, and ``DamagedFile`` if it cannot be used; in both cases this run
        is to be made again.
        """
        tensors, header = read_tensors(path)
        if header.get("identity") != self.identity:
            raise OtherRecipe(path, "is a checkpoint of another recipe", "move it away or choose another output.")
        try:
            self._restore(tensors, header)
        except (LookupError, TypeError, ValueError, ArithmeticError, RuntimeError) as error:
            reason = " ".join(str(error).split())
            raise DamagedFile(path, f"is corrupt or incompatible ({reason})", "move it away.") from error

    def _restore(self, tensors: dict[str, Tensor], header: dict[str, str]) -> None:
        self.source.load_state_dict(_part(tensors, "source"))
        self.updates.restore(_part(tensors, "optimiser"))
        self.state = _like(self.state, _part(tensors, "state"))
        self.gen.set_state(tensors["gen"])
        progress = parsed(header["progress"])
        if not 0 <= int(progress["number"]) <= self.descent.steps:
            raise ValueError(f"it is of step {progress['number']} of {self.descent.steps}")
        self.cost = Cost(float(progress["wall"]), float(progress["cpu"]))
        self.scores = {str(name): float(score) for name, score in dict(progress.get("scores", {})).items()}
        self.number, self._settled = int(progress["number"]), tensors["gen"]


def _require_fitting(made: Data, data: Data) -> None:
    """An error if a source gives other examples than the data has; those of texts are embeddings."""
    given, wanted = tuple(made.x.shape[1:]), tuple(data[:1].dense().x.shape[1:])
    if given != wanted:
        raise AttarError(
            f"The source gives examples of shape {given}, but those of {data.spec.name or 'the data'} have shape "
            f"{wanted}: make its forward pass return that shape."
        )


def _short(value: float | list[float]) -> str:
    return f"{min(value):g} to {max(value):g}" if isinstance(value, list) else f"{value:g}"


def _part(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name[len(prefix) + 1 :]: t for name, t in tensors.items() if name.startswith(prefix + ".")}


def _like(template: Any, tensors: dict[str, Tensor]) -> Any:
    """A state like ``template`` with the values of ``tensors``; ints and floats become ints and floats again."""
    values = {
        name: tensors[name].to(old.device) if isinstance(old, Tensor) else type(old)(tensors[name].item())
        for name, old in template._asdict().items()
    }
    return type(template)(**values)
