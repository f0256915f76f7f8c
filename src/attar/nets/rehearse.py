"""One forward pass before a module becomes a network: is it deterministic, and which layer returns the logits?"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Generator, Tensor, nn

from attar.core.errors import AttarError
from attar.data.spec import Element
from attar.nets.cosine import Cosine
from attar.nets.module import borrowing


class Head(NamedTuple):
    """The layer that returns the logits, and the names of its parameters."""

    layer: nn.Linear | Cosine
    weight: str
    bias: str | None
    gain: str | None  #: of a cosine classifier


@torch.no_grad()
def rehearse(module: nn.Module, name: str, element: Element, classes: int) -> Head | None:
    """Refuse a module that cannot be a ``Network``, and find its last layer.

    Args:
        module: The module; it is run once on two random examples.
        name: Its name in errors.
        element: What one example is.
        classes: Number of logits.

    Returns:
        The layer that returns the logits; None if it is neither linear nor a cosine classifier.
    """
    before = {key: value.clone() for key, value in module.named_buffers()}
    calls: list[tuple[nn.Module, object]] = []
    heads = [part for part in module.modules() if isinstance(part, nn.Linear | Cosine)]
    handles = [part.register_forward_hook(lambda m, _, output: calls.append((m, output))) for part in heads]
    with borrowing, torch.random.fork_rng(devices=[]):
        state = torch.get_rng_state()
        try:
            logits = module(element.random(2, Generator().manual_seed(0)))
        except (RuntimeError, ValueError, TypeError) as error:
            raise AttarError(f"{name} cannot take examples of shape {element.shape} ({error}): fix one.") from error
        finally:
            for handle in handles:
                handle.remove()
        random = not torch.equal(state, torch.get_rng_state())
    changed = [key for key, value in module.named_buffers() if not torch.equal(value, before[key])]
    if changed:
        raise AttarError(
            f"{name} changes its buffer {changed[0]!r} in the forward pass, as BatchNorm does in training "
            "mode: use GroupNorm or InstanceNorm, set track_running_stats=False, or return it from .eval()."
        )
    if random:
        raise AttarError(
            f"{name} draws random numbers in the forward pass, as Dropout does in training mode: "
            "take that layer out or return the module from .eval()."
        )
    if not isinstance(logits, Tensor) or tuple(logits.shape) != (2, classes):
        found = tuple(logits.shape) if isinstance(logits, Tensor) else type(logits).__name__
        raise AttarError(f"{name} must return logits of shape (n, {classes}), but two examples gave {found}.")
    return _named(module, calls[-1][0]) if calls and calls[-1][1] is logits else None


def _named(module: nn.Module, head: nn.Module) -> Head | None:
    names = {id(value): key for key, value in module.named_parameters()}  # one name where weights are tied
    if not isinstance(head, nn.Linear | Cosine) or id(head.weight) not in names:
        return None
    bias = None if head.bias is None else names[id(head.bias)]
    return Head(head, names[id(head.weight)], bias, names[id(head.gain)] if isinstance(head, Cosine) else None)
