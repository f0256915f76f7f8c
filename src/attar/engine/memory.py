"""Memory settings of the process."""

from __future__ import annotations

import ctypes
import sys

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of mallopt(3)


def keep_freed_memory() -> None:
    """Tell the C library to reuse large freed blocks instead of giving them back to the system.

    Every training step frees and allocates the same large tensors; where new pages are slow, this saves time. In return
    the process never gives memory back, so only programs call this, never an import.
    """
    if sys.platform == "linux":
        libc = ctypes.CDLL(None)
        if hasattr(libc, "mallopt"):  # glibc; musl has none
            # Older versions refuse more than 32 MiB.
            _ = libc.mallopt(_MMAP_THRESHOLD, 1 << 30) or libc.mallopt(_MMAP_THRESHOLD, 1 << 25)
            libc.mallopt(_TRIM_THRESHOLD, 2**31 - 1)
