"""Where jobs run, and memory settings of the process."""

from attar.engine.memory import keep_freed_memory
from attar.engine.pool import Engine, Where, run_all

__all__ = ["Engine", "Where", "keep_freed_memory", "run_all"]
