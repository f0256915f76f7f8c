"""Settings of every test run: one thread, as results are compared to the bit, and memory that is kept."""

import torch

from attar.engine.memory import keep_freed_memory

torch.set_num_threads(1)
keep_freed_memory()
