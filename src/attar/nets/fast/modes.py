"""Half precision and compiled code for first-order gradients: other bits than float32, so only where the user asks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal

import torch
from torch import Tensor, nn
from torch.func import functional_call

Accelerate = Literal["none", "auto", "bfloat16", "compile", "bfloat16+compile"]  #: what the user may ask for
Call = Callable[[Mapping[str, Tensor], Tensor], Tensor]  #: from parameters and buffers by name, and examples, to logits

NONE, AUTO = "none", "auto"
HALF, COMPILED = "bfloat16", "compile"
MODES = (HALF, COMPILED, f"{HALF}+{COMPILED}")

_mode = ContextVar("mode", default=NONE)


def current() -> str:
    """The mode of gradients here: ``none`` outside of ``using``."""
    return _mode.get()


@contextmanager
def using(mode: str) -> Iterator[None]:
    """A context in which first-order gradients are computed in this mode."""
    before = _mode.set(mode)
    try:
        yield
    finally:
        _mode.reset(before)


def half(call: Call) -> Call:
    """The same in bfloat16 wherever PyTorch's autocast deems it safe; logits are float32."""

    def run(state: Mapping[str, Tensor], x: Tensor) -> Tensor:
        with torch.autocast(x.device.type, torch.bfloat16):
            return call(state, x).float()

    return run


def compiled(module: nn.Module) -> Call:
    """A module as a compiled function of its parameters and buffers."""

    def call(state: Mapping[str, Tensor], x: Tensor) -> Tensor:
        logits: Tensor = functional_call(module, dict(state), (x,))
        return logits

    made: Call = torch.compile(call)
    return made
