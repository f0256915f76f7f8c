"""Seeds of independent random streams."""

from __future__ import annotations

import hashlib


def seed_of(purpose: str, *numbers: int) -> int:
    """A seed below 2^62: a hash of the purpose and the numbers.

    Args:
        purpose: What is drawn from the stream, such as ``evaluation``.
        numbers: Which one of its kind, such as the user's seed and a count.
    """
    parts = [purpose] if purpose else []  # experts use the empty purpose, so that existing stores stay valid
    text = "/".join([*parts, *map(str, numbers)])
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 2
