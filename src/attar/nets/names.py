"""From a name such as ``convnet-d3w128-batch`` to a network, and back."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial

import torch
from torch import Tensor, nn

from attar.core.errors import AttarError, unknown
from attar.data.spec import Image, Spec, Tokens
from attar.nets.architectures import ARCHITECTURES, STORED, Options
from attar.nets.cosine import with_cosine
from attar.nets.layers import ACTIVATIONS, INITS, NORMS, POOLS, initialised
from attar.nets.module import fresh
from attar.nets.network import Network
from attar.nets.weightnorm import normalised

_KNOWN = ARCHITECTURES | STORED
#: Names and what they are.
NETWORKS = {name: architecture.about for name, architecture in ARCHITECTURES.items()}

LARGEST = 2**28  #: largest number of parameters: 1 GiB for each draw
_ALIASES = {"cn": "convnet"}
_OWN = "custom:"
#: Options with numbers: their letter and most digits.
_SIZES = {"depth": ("d", 3), "width": ("w", 7), "branches": ("b", 3), "neighbours": ("k", 7), "examples": ("n", 7)}

#: Options that are words, and the words.
_WORDS: dict[str, Iterable[str]] = {
    "norm": NORMS,
    "activation": ACTIVATIONS,
    "pool": POOLS,
    "init": INITS,
    "weights": ["weightnorm"],
    "head": ["cosine"],
}
#: The option that each token sets; "none" alone would be ambiguous between norm and pooling.
_TOKENS = {
    token if token != "none" else f"no{kind}": (kind, token) for kind, known in _WORDS.items() for token in known
}


def network(
    which: str | Callable[[], nn.Module] | Network | None, problem: Spec | Sequence[int], classes: int | None = None
) -> Network:
    """The network of this name, or of this factory, for a problem.

    Args:
        which: A name (see ``NETWORKS``) with options behind it in any order, as in ``"convnet-d3w32-batch-max"``: sizes
            ``d<depth>w<width>``, or a width for each layer as in ``d3w64x128x256``, and branches of a convnet as in
            ``d3w32b4``; norm batch, layer, instance, group or nonorm; activation relu, sigmoid or leakyrelu; pooling
            max, avg or nopool; initial weights xavier or he instead of PyTorch's own; weightnorm, which learns length
            and direction of weights separately in all layers but the last; cosine, a cosine classifier instead of the
            last linear layer. Or a zero-argument function (or class) that makes a new ``nn.Module`` every time it is
            called. Or a ``Network``, which is returned as it is. None stands for the default.
        problem: What an example and a label are; or the shape of one example, (features,) or (channels, height, width).
        classes: Number of classes, at least 2, where ``problem`` is a shape.
    """
    if not isinstance(problem, Spec):
        if not problem or min(problem) < 1:
            raise AttarError(f"A network needs a shape of positive numbers, got {tuple(problem)}.")
        problem = Spec.of(problem, classes or 0)
    element, logits = problem.element, len(problem.target)
    if logits < 2:
        raise AttarError(f"A network needs 2 classes or more, got {logits}.")
    if isinstance(which, Network):
        if (which.shape, which.classes) != (element.shape, logits):
            raise AttarError(f"{which} does not fit shape {element.shape} and {logits} classes: pass its name instead.")
        return which
    which = default(problem) if which is None else which
    if not isinstance(which, str):
        return Network(_OWN + _title(which), element, logits, which)
    name, options = parse(which)
    architecture = _KNOWN[name]
    own = {key: options[key] for key in architecture.options}
    build: Callable[[], nn.Module] = partial(architecture.build, _input(name, problem), logits, **own)
    _affordable(which, build)
    if options["init"] in INITS:
        build = partial(initialised, build, options["init"])
    if options["weights"] == "weightnorm":
        build = partial(normalised, build, name)
    if options.get("head") == "cosine":
        build = partial(with_cosine, build)
    return Network(canonical(name, options), element, logits, build)


def _input(name: str, problem: Spec) -> Tensor | tuple[int, ...]:
    """What an architecture is built for: a table of embeddings or a shape."""
    tokens = isinstance(problem.element, Tokens)
    if tokens != (_KNOWN[name].reads is Tokens):
        kind = "texts" if tokens else "numbers"
        raise AttarError(f"{name} does not read {kind}: use {default(problem)}.")
    return problem.transform.tensors()["table"] if tokens else problem.element.shape


def _affordable(which: str, build: Callable[[], nn.Module]) -> None:
    """Refuse a network that would not fit into memory; its size is computed on the meta device, without allocation."""
    with torch.device("meta"):
        size = sum(part.numel() for part in build().parameters())
    if size > LARGEST:
        raise AttarError(
            f"{which} has {size:,} parameters here, {4 * size / 2**30:,.0f} GiB for each draw, and at most "
            f"{LARGEST:,} can be used: choose a smaller width or depth."
        )


def parse(spec: str) -> tuple[str, Options]:
    """Architecture and all its options, the defaults filled in."""
    lower = spec.strip().lower()
    for alias, full in _ALIASES.items():
        lower = re.sub(rf"^{alias}(?=-|$)", full, lower)
    if lower.startswith(_OWN):
        raise AttarError(f"{spec!r} stands for a module of your own: pass the function that builds it.")
    name = next((name for name in _KNOWN if lower == name or lower.startswith(name + "-")), None)
    if name is None:
        raise unknown("network", spec, ARCHITECTURES)
    given: Options = {}
    for token in lower.removeprefix(name).split("-")[1:]:
        found = _read(token)
        if not found or not found.keys() <= _options(name).keys():
            raise unknown(f"option of {name}", token, _allowed(name))
        if twice := found.keys() & given.keys():
            raise AttarError(f"{spec!r} sets the {min(twice)} twice: keep one of them.")
        given |= found
    options = _options(name) | given
    several = options.get("width")
    if isinstance(several, tuple) and len(several) != options.get("depth", 1):
        takes = options.get("depth", 1)
        raise AttarError(f"{spec!r} names {len(several)} widths and needs {takes}: give one for each layer.")
    return name, options


def convnet_width(name: str) -> int | None:
    """The width of a convnet's last block; None for other networks."""
    if name.startswith(_OWN):
        return None
    kind, options = parse(name)
    width = options["width"] if kind == "convnet" else None
    return width[-1] if isinstance(width, tuple) else None if width is None else int(width)


def canonical(name: str, options: Options) -> str:
    """The one spelling: sizes always, branches and other options where they differ from the default."""
    defaults = _options(name)
    named = {k: options[k] for k in _SIZES if k in defaults and (k, options[k]) != ("branches", 1)}
    sizes = "".join(f"{_SIZES[key][0]}{_spelt(size)}" for key, size in named.items())
    parts = [sizes] if sizes else []
    chosen = [(key, value) for key, value in options.items() if isinstance(value, str) and value != defaults[key]]
    parts += [next(token for token, meaning in _TOKENS.items() if meaning == pair) for pair in chosen]
    return "-".join([name, *parts])


def _options(name: str) -> Options:
    """Options with their defaults; every network has those of its initial weights, and trained ones of their head."""
    trained = {"head": "linear"} if name in ARCHITECTURES else {}
    return _KNOWN[name].options | {"init": "default", "weights": "plain"} | trained


def default(problem: Spec) -> str:
    """The default network: an MLP for feature vectors, a small ConvNet for images.

    No block of the ConvNet normalises a map smaller than 4×4: over four numbers and one image, instance norm makes
    gradients so rough that matching them fails.
    """
    match problem.element:
        case Image(_, height, width):
            return f"convnet-d{min(3, max(1, min(height, width).bit_length() - 2))}w32"
        case Tokens():
            return "embedding-bag"
        case _:
            return "mlp"


def _spelt(size: int | str | tuple[int, ...]) -> str:
    return "x".join(map(str, size)) if isinstance(size, tuple) else str(size)


def _read(token: str) -> Options:
    if token in _TOKENS:
        kind, value = _TOKENS[token]
        return {kind: value}
    number = {key: rf"[1-9]\d{{0,{digits - 1}}}" for key, (_, digits) in _SIZES.items()}
    number["width"] += f"(?:x{number['width']})*"
    sizes = re.fullmatch("".join(f"(?:{letter}({number[key]}))?" for key, (letter, _) in _SIZES.items()), token)
    found = zip(_SIZES, sizes.groups(), strict=True) if sizes else ()
    each = {key: tuple(map(int, text.split("x"))) for key, text in found if text}
    return {key: size if len(size) > 1 else size[0] for key, size in each.items()}


def _allowed(name: str) -> list[str]:
    options = _options(name)
    sizes = "".join(f"{letter}<{key}>" for key, (letter, _) in _SIZES.items() if key in options)
    return ([sizes] if sizes else []) + [token for token, (kind, _) in _TOKENS.items() if kind in options]


def _title(factory: Callable[[], nn.Module]) -> str:
    """The name of the class that a user's factory makes; refuses what is not a factory."""
    advice = "pass a function without arguments that makes a new nn.Module every time, such as lambda: MyNet(10)."
    if isinstance(factory, nn.Module) or not callable(factory):
        raise AttarError(f"A network cannot be made from {type(factory).__name__}: {advice}")
    first, second = (fresh(factory, seed=0) for _ in range(2))
    if first is second or not isinstance(first, nn.Module):
        found = "the same module twice" if isinstance(first, nn.Module) else type(first).__name__
        raise AttarError(f"The network factory gave {found}: {advice}")
    return type(first).__name__
