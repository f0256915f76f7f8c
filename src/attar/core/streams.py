"""Seeds of independent random streams, and the two sides that never share one: reduction and evaluation."""

from __future__ import annotations

import hashlib

import torch
from torch import Generator

#: PyTorch's CPU generators use the lowest 32 bits of a seed only. The highest of these separates the two sides.
EVALUATION = 1 << 31


def seed_of(purpose: str, *numbers: int) -> int:
    """A seed below 2^62: a hash of the purpose and the numbers.

    Args:
        purpose: What is drawn from the stream, such as ``evaluation``.
        numbers: Which one of its kind, such as the user's seed and a count.
    """
    parts = [purpose] if purpose else []  # experts use the empty purpose, as they always did
    text = "/".join([*parts, *map(str, numbers)])
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 2


def reduction(seed: int, device: torch.device | str = "cpu") -> Generator:
    """The stream of whatever makes a coreset, from a user's seed or one of ``seed_of``."""
    plain = seed if 0 <= seed < EVALUATION else seed_of("reduction", seed) & ~EVALUATION
    return torch.Generator(device).manual_seed(plain)


def evaluation(seed: int, device: torch.device | str = "cpu", purpose: str = "inference") -> Generator:
    """The stream of whatever infers or scores; no seed gives a stream that ``reduction`` gives for any seed."""
    return torch.Generator(device).manual_seed(seed_of(purpose, seed) | EVALUATION)
