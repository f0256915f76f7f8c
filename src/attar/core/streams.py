"""Seeds of random streams that must not overlap."""

from __future__ import annotations

import hashlib


def seed_of(purpose: str, *numbers: int) -> int:
    """A seed below 2^62 that no other purpose and no other numbers share, but by the chance of a hash.

    Args:
        purpose: What is drawn from the stream, such as ``evaluation``.
        numbers: Which one of its kind, such as the user's seed and a count.
    """
    parts = [purpose] if purpose else []  # experts have none, so that stores made before keep their bits
    text = "/".join([*parts, *map(str, numbers)])
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 2
