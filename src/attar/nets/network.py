"""Networks as functions of one flat parameter vector, the form that samplers, experts and unrolling use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple

import torch
from torch import Generator, Tensor, nn
from torch.nn.utils.parametrize import is_parametrized

from attar.core.errors import AttarError
from attar.data.spec import Element, element_of
from attar.nets.cosine import Cosine, scaled
from attar.nets.fast import enabled, modes
from attar.nets.fast.first_order import forwards
from attar.nets.fast.perceptron import Perceptron, perceptron
from attar.nets.module import Stateless, flat, fresh, learnt
from attar.nets.rehearse import Head, rehearse

BESIDE = 1e-3  #: tolerance relative to the largest logit: far above rounding, far below the effect of batch norm


@dataclass(frozen=True)
class Layer:
    """One application of a linear or convolution layer."""

    module: nn.Linear | nn.Conv2d
    #: indices of its parameters in theta, ``(outputs, inputs)``, a bias as the last column; empty where the weights are
    #: frozen or normalised
    index: Tensor
    input: Tensor
    output: Tensor


class Light(NamedTuple):
    """A network at one parameter vector, split into autograd leaves for fast first-order gradients."""

    theta: Tensor  #: (p,), a copy, of which the leaves are views
    logits: Callable[[Tensor], Tensor]
    leaves: list[Tensor]  #: in the order of theta
    mode: str  #: of its gradients


class Network:
    r"""A classifier :math:`f(\theta, x)` whose parameters are one vector :math:`\theta \in R^p`.

    It holds no weights of its own: every call takes ``theta``, of any float dtype and on any device, and works under
    ``torch.func.vmap``, ``torch.func.grad`` and double backward. Buffers, and parameters with
    ``requires_grad=False``, are no part of ``theta``: they keep the values that the module was built with. The module
    stays in the mode (train or eval) in which ``build`` returns it, and a forward pass that is random (Dropout in
    training mode) or that changes buffers (BatchNorm with running statistics in training mode) is refused. One object
    serves one thread at a time.

    Args:
        name: The name from which ``attar.nets.network`` builds it again.
        element: What one example is; a shape stands for a feature vector or an image.
        classes: Number of logits.
        build: Makes a new, freshly initialised module.
    """

    def __init__(
        self, name: str, element: Element | Sequence[int], classes: int, build: Callable[[], nn.Module]
    ) -> None:
        self.name, self.classes = name, classes
        self.element = element_of(element) if isinstance(element, Sequence) else element
        self.shape = self.element.shape
        self._build = build
        self._module = fresh(build, seed=0)
        self._shapes = {key: value.shape for key, value in learnt(self._module).items()}
        self._sizes = [shape.numel() for shape in self._shapes.values()]
        self._fixed = {k: v.detach() for k, v in self._module.named_parameters() if not v.requires_grad}
        self._fixed |= dict(self._module.named_buffers())
        self._stateless, self._quick = Stateless(self._module), Stateless(self._module, forwards(self._module))
        self.perceptron: Perceptron | None = perceptron(self._module, self.shape)  #: for several vectors at once
        self._light: Light | None = None
        self._head = rehearse(self._module, name, self.element, classes)

    @property
    def size(self) -> int:
        """Number of parameters, p."""
        return sum(self._sizes)

    @cached_property
    def activations(self) -> int:
        """Approximate number of activations that one example's forward pass stores for the backward pass."""
        counts: list[int] = []
        leaves = [
            module
            for name, module in self._module.named_modules()
            if "parametrizations" not in name.split(".") and (is_parametrized(module) or not list(module.children()))
        ]
        handles = [m.register_forward_hook(lambda _m, _x, output: counts.append(output.numel())) for m in leaves]
        try:
            with torch.no_grad():
                self._module(self._example(1))
        finally:
            for handle in handles:
                handle.remove()
        return sum(counts)

    @cached_property
    def separate(self) -> bool:
        """Whether the prediction for an example is independent of the rest of the batch.

        It is not with batch norm without running statistics. Tested on one example alone and in a batch of four.
        """
        gen = torch.Generator().manual_seed(0)
        theta = self.init(gen)
        x = self.element.random(4, gen)
        with torch.no_grad():
            try:
                alone, beside = self(theta, x[:1])[0], self(theta, x)[0]
            except ValueError:  # batch norm of a single value
                return False
        return torch.allclose(alone, beside, rtol=0, atol=BESIDE * float(beside.abs().max()))

    def init(self, gen: Generator) -> Tensor:
        """A fresh random initialisation, ``(p,)``, by PyTorch's default rules, on the device of ``gen``."""
        seed = int(torch.randint(2**63 - 1, (), generator=gen, device=gen.device))
        return flat(fresh(self._build, seed)).to(gen.device)

    def __call__(self, theta: Tensor, x: Tensor) -> Tensor:
        """Logits, ``(n, classes)``."""
        return self._run(self._stateless, self._state(theta), x)

    def at(self, theta: Tensor, mode: str = modes.NONE) -> Light:
        """The network at ``theta``, for first-order gradients only; the next call overwrites it.

        Args:
            theta: The parameters.
            mode: Half precision or compiled code (``nets.fast.modes``).
        """
        old = self._light
        if old is None or (old.theta.dtype, old.theta.device, old.mode) != (theta.dtype, theta.device, mode):
            copy = torch.empty_like(theta)
            leaves = {key: part.detach().requires_grad_() for key, part in self.unflatten(copy).items()}
            logits = partial(self._run, self._call(mode), leaves | self._rest(theta))
            old = self._light = Light(copy, logits, list(leaves.values()), mode)
        old.theta.copy_(theta)
        return old

    def features(self, theta: Tensor, x: Tensor, fast: bool = False) -> Tensor:
        """Inputs of the last layer, ``(n, h)``: the logits are ``F.linear(features, *head(theta))``.

        Args:
            theta: The parameters.
            x: The examples.
            fast: By the fastest convolutions, whose gradient cannot be differentiated again.
        """
        seen: list[Tensor] = []
        call = self._quick if fast and enabled() else self._stateless
        handle = self._last().layer.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
        try:
            self._run(call, self._state(theta), x)
        finally:
            handle.remove()
        return seen[-1]

    def head(self, theta: Tensor) -> tuple[Tensor, Tensor]:
        """Weight ``(classes, h)`` and bias ``(classes,)`` in ``theta`` of the last layer; a missing bias is zero."""
        last, state = self._last(), self._state(theta)
        weight = state[last.weight] if last.gain is None else scaled(state[last.weight], state[last.gain])
        return weight, theta.new_zeros(self.classes) if last.bias is None else state[last.bias]

    def outputs(self) -> Tensor:
        """Indices in ``theta`` of every logit's weights: ``(classes, h)``, or ``(classes, h + 1)`` with a bias."""
        index = self._index(self._last().layer)
        if not index.numel():
            raise AttarError(f"The last layer of {self.name} is frozen: set requires_grad on its weight and bias.")
        return index

    def head_index(self) -> Tensor:
        """``outputs`` of a linear last layer; raises for a cosine classifier, which is not linear in its parameters."""
        if self._last().gain is not None:
            raise AttarError(
                f"The last layer of {self.name} is a cosine classifier, and this needs a linear one: "
                "use the network without -cosine."
            )
        return self.outputs()

    def layers(self, theta: Tensor, x: Tensor) -> tuple[Tensor, list[Layer]]:
        """Logits of ``x`` under ``theta``, and inputs and outputs of every linear or convolution layer."""
        seen: list[Layer] = []

        def look(module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> Tensor:
            assert isinstance(module, nn.Linear | nn.Conv2d)
            seen.append(Layer(module, found[module], inputs[0], output))
            return output.clone()  # a copy, in case the next layer works in place

        kinds = [module for module in self._module.modules() if isinstance(module, nn.Linear | nn.Conv2d)]
        found = {module: self._index(module) for module in kinds}
        handles = [module.register_forward_hook(look) for module in found]
        try:
            logits = self(theta, x)
        finally:
            for handle in handles:
                handle.remove()
        return logits, seen

    def unflatten(self, theta: Tensor) -> dict[str, Tensor]:
        """Views of ``theta`` by parameter name, in order."""
        if tuple(theta.shape) != (self.size,):
            raise AttarError(
                f"{self.name} has {self.size} parameters, got theta of shape {tuple(theta.shape)}: "
                f"pass one vector of shape ({self.size},), and use torch.func.vmap for several."
            )
        parts = torch.split(theta, self._sizes)
        return {key: part.view(shape) for (key, shape), part in zip(self._shapes.items(), parts, strict=True)}

    def _example(self, n: int) -> Tensor:
        return self.element.random(n, torch.Generator().manual_seed(0))

    def _call(self, mode: str) -> modes.Call:
        """The forward pass of a mode."""
        if mode == modes.NONE:
            return self._quick
        call = self._compiled if modes.COMPILED in mode else self._stateless
        return modes.half(call) if modes.HALF in mode else call

    @cached_property
    def _compiled(self) -> modes.Call:
        return modes.compiled(self._module)

    def _run(self, call: modes.Call, state: dict[str, Tensor], x: Tensor) -> Tensor:
        if not self.element.fits(x):
            raise AttarError(
                f"{self.name} was built for examples of shape {self.shape}, got a batch of shape {tuple(x.shape)}: "
                f"pass x of shape (n, {', '.join(map(str, self.shape))}) or build the network for this shape."
            )
        return call(state, x)

    def _state(self, theta: Tensor) -> dict[str, Tensor]:
        return self.unflatten(theta) | self._rest(theta)

    def _rest(self, theta: Tensor) -> dict[str, Tensor]:
        """Frozen parameters and buffers, with the dtype and device of ``theta``."""
        return {
            key: value.to(theta.device, theta.dtype if value.is_floating_point() else value.dtype)
            for key, value in self._fixed.items()
        }

    def _index(self, layer: nn.Linear | nn.Conv2d | Cosine) -> Tensor:
        names = {id(value): key for key, value in self._module.named_parameters()}
        where = self.unflatten(torch.arange(self.size))
        parts = [where.get(names.get(id(p), "")) for p in (layer.weight, layer.bias) if p is not None]
        matrices = [part.flatten(1) if part.ndim > 1 else part[:, None] for part in parts if part is not None]
        return torch.cat(matrices, 1) if len(matrices) == len(parts) else torch.empty(0, 0, dtype=torch.int64)

    def _last(self) -> Head:
        if self._head is None:
            raise AttarError(
                f"{self.name} has no features: the last layer, which returns the logits, must be a plain nn.Linear."
            )
        return self._head

    def __reduce__(self) -> tuple[type[Network], tuple[str, Element, int, Callable[[], nn.Module]]]:
        return Network, (self.name, self.element, self.classes, self._build)  # other processes build it again

    def __repr__(self) -> str:
        return f"Network({self.name!r}, shape={self.shape}, classes={self.classes}, size={self.size})"
