"""Where jobs run, and memory settings of the process."""

from attar.engine.memory import keep_freed_memory
from attar.engine.pool import run_all

__all__ = ["keep_freed_memory", "run_all"]
