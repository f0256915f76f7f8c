"""One job that several processes compute together: each takes a share of the work, and gradients are summed."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from multiprocessing import connection, get_context
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch import distributed as dist

from attar.core.errors import AttarError
from attar.engine.follow import end_with_parent
from attar.engine.job import threads_of
from attar.engine.memory import keep_freed_memory

WAIT = timedelta(minutes=30)  #: for the other processes, before a step is given up
GRACE = 10.0  #: seconds for the other processes to end
CPU = torch.device("cpu")


class Share(NamedTuple):
    """The place of this process among those that compute one job together."""

    rank: int = 0
    size: int = 1

    @staticmethod
    def here() -> Share:
        """The place in the group of ``torch.distributed``, if it was set up (by torchrun and your script); or alone."""
        if dist.is_available() and dist.is_initialized():
            return Share(dist.get_rank(), dist.get_world_size())
        return Share()

    def rows(self, count: int) -> slice:
        """The rows of this process, of ``count``: one block each."""
        return slice(count * self.rank // self.size, count * (self.rank + 1) // self.size)

    def total(self, x: Tensor) -> Tensor:
        """The sum over the processes, without a graph."""
        if self.size == 1:
            return x
        summed = x.detach().clone()
        dist.all_reduce(summed)
        return summed

    def gather(self, x: Tensor, count: int) -> Tensor:
        """All ``count`` rows from the rows of every process; the gradient of each goes back to its own process."""
        if self.size == 1:
            return x
        gathered: Tensor = _Gather.apply(x, count, self)  # type: ignore[no-untyped-call]
        return gathered


class _Gather(torch.autograd.Function):
    """Rows of all processes; backwards, the sum of all gradients of the own rows."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, count: int, share: Share) -> Tensor:
        ctx.share, ctx.count = share, count
        whole = x.new_zeros(count, *x.shape[1:])
        whole[share.rows(count)] = x.detach()
        dist.all_reduce(whole)
        return whole

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor, None, None]:
        return ctx.share.total(slopes[0].contiguous())[ctx.share.rows(ctx.count)], None, None


@contextmanager
def together(
    size: int, work: Callable[[Share, Any], object], argument: Any, device: torch.device = CPU
) -> Iterator[Share]:
    """Start processes that run ``work(share, argument)`` beside this one, which is the first, and end with the block.

    Args:
        size: Processes in all. They speak over loopback; the cores are divided among them.
        work: A module-level function that makes the same calls of ``Share`` as the block does.
        argument: Sent to every process; tensors are shared, not copied.
        device: Of the first process; see ``link``.
    """
    if not dist.is_available():
        raise AttarError("This build of PyTorch has no torch.distributed: leave processes out.")
    if dist.is_initialized():
        raise AttarError("This process already belongs to a group of torch.distributed: leave processes out.")
    threads = torch.get_num_threads()
    each = threads_of(size)
    store = _store(0, size, first=True)
    context = get_context("spawn")
    arguments = [(rank, size, store.port, each, work, argument, device) for rank in range(1, size)]
    others = [context.Process(target=_beside, args=some, daemon=True) for some in arguments]
    for other in others:
        other.start()
    try:
        torch.set_num_threads(each)
        _join(store, 0, size, device)
        yield Share(0, size)
        for other in others:
            other.join(GRACE)
    except RuntimeError as error:  # the connection breaks a moment before the process has ended
        connection.wait([other.sentinel for other in others], timeout=GRACE)
        if any(other.exitcode for other in others):
            raise AttarError("Another process of this run ended, perhaps for lack of memory: try fewer.") from error
        raise
    finally:
        for other in others:
            other.kill()
            other.join()
        if dist.is_initialized():
            dist.destroy_process_group()
        torch.set_num_threads(threads)


def _beside(
    rank: int,
    size: int,
    port: int,
    threads: int,
    work: Callable[[Share, Any], object],
    argument: Any,
    device: torch.device,
) -> None:
    for number in (signal.SIGINT, signal.SIGHUP):  # a terminal sends these to all; the first process ends the others
        signal.signal(number, signal.SIG_IGN)
    end_with_parent()
    keep_freed_memory()
    torch.set_num_threads(threads)
    _join(_store(port, size, first=False), rank, size, device)
    with suppress(AttarError):  # the first process raises it too
        work(Share(rank, size), argument)


def _store(port: int, size: int, *, first: bool) -> Any:
    """Where the processes find each other: a port of loopback, which the first one opens."""
    from torch._C._distributed_c10d import TCPStore  # some builds of PyTorch have none

    return TCPStore("127.0.0.1", port, size, is_master=first, wait_for_workers=False)


def link(device: torch.device, share: Share, gpus: int, nccl: bool) -> tuple[str, torch.device]:
    """How a process speaks to the others, and where it computes: by nccl on a GPU of its own if there are enough.

    Args:
        device: Of the first process.
        share: The place of the process.
        gpus: Of this machine.
        nccl: Whether PyTorch has it.
    """
    if device.type == "cuda" and nccl and gpus >= share.size:
        return "nccl", torch.device("cuda", ((device.index or 0) + share.rank) % gpus)
    return "gloo", device


def link_here(device: torch.device, share: Share) -> tuple[str, torch.device]:
    """``link`` on this machine."""
    return link(device, share, torch.cuda.device_count(), dist.is_nccl_available())


def _join(store: Any, rank: int, size: int, device: torch.device) -> None:
    backend, own = link_here(device, Share(rank, size))
    if own.type == "cuda":
        torch.cuda.set_device(own)
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    dist.init_process_group(backend, store=store, rank=rank, world_size=size, timeout=WAIT)
