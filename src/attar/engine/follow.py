"""Worker processes that end with the process that started them."""

from __future__ import annotations

import os
import threading
from multiprocessing import parent_process


def end_with_parent() -> None:
    """Watch the parent from a thread and end with it, even if it was killed.

    Otherwise old workers could write during a new run.
    """
    threading.Thread(target=_follow, daemon=True).start()


def _follow() -> None:
    if parent := parent_process():
        parent.join()
        os._exit(1)
