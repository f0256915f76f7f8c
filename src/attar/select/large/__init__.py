"""Selection from tables that need not fit into memory."""

from attar.select.large.jobs import parts_of
from attar.select.large.plan import LargePlan, plan
from attar.select.large.run import run
from attar.select.large.table import table_of

__all__ = ["LargePlan", "parts_of", "plan", "run", "table_of"]
