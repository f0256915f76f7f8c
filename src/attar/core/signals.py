"""Signals that end a program (Ctrl-C, a request to terminate, a closed terminal): work is saved before they act."""

from __future__ import annotations

import _thread
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import parent_process
from types import FrameType

from attar.core.errors import AttarError

STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
AGAIN = 0.05  #: seconds after which a signal that was ignored is sent again


class Interrupted(KeyboardInterrupt):
    """A signal ended the work.

    Args:
        number: The signal.
        saved: A sentence on what was saved before; empty if nothing was.
    """

    def __init__(self, number: int, saved: str = "") -> None:
        super().__init__(saved)
        self.number = number


@contextmanager
def raised() -> Iterator[None]:
    """Let these signals raise ``Interrupted``, so that files and processes are closed; ignored ones stay ignored.

    An error after a signal is the signal too: compiled code may replace what is raised while it runs. Where errors are
    ignored, as in a destructor, the signal is sent again a little later.
    """
    came: list[int] = []
    ignored = sys.unraisablehook

    def again(found: sys.UnraisableHookArgs) -> None:
        if isinstance(found.exc_value, Interrupted):
            _thread.start_new_thread(_send_again, (found.exc_value.number,))
        else:
            ignored(found)

    def stop(number: int, frame: FrameType | None) -> None:
        if frame is not None and frame.f_code is again.__code__:  # what is raised there is lost, too
            _thread.start_new_thread(_send_again, (number,))
            return
        came.append(number)
        raise Interrupted(number)

    before = _handlers()
    _handle(dict.fromkeys(before, stop))
    sys.unraisablehook = again
    try:
        yield
    except Exception as error:
        if came:
            raise Interrupted(came[0]) from error
        raise
    finally:
        sys.unraisablehook = ignored
        _handle(before)


def _send_again(number: int) -> None:
    time.sleep(AGAIN)
    signal.pthread_kill(threading.main_thread().ident or 0, number)


class Held:
    """Holds the first signal back, so that work can be saved; a second one acts at once, except in a worker.

    The parent of a worker ends it if it takes too long, and may repeat a signal that the worker already has.
    """

    def __init__(self) -> None:
        self.number: int | None = None  #: the signal that came
        self._before = _handlers()
        self._hold()

    def act(self, saved: str) -> None:
        """Let the signal that came do what it does without us; nothing if none came.

        Args:
            saved: What was saved; becomes the message of ``Interrupted`` where the signal raises.
        """
        if self.number is None:
            return
        number, self.number = self.number, None
        self.release()
        try:
            signal.raise_signal(number)
        except KeyboardInterrupt as stop:
            raise Interrupted(number, saved) from stop
        self._hold()  # the program has a handler of its own, and goes on

    def release(self) -> None:
        """Do as before."""
        _handle(self._before)

    def _hold(self) -> None:
        _handle(dict.fromkeys(self._before, self._note))

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.number = number
        if parent_process() is None:
            self.release()


@contextmanager
def held() -> Iterator[Held]:
    """Hold signals back in this block; ask ``number`` whether one came, and call ``act`` when all is saved."""
    waiting = Held()
    try:
        yield waiting
    finally:
        waiting.release()


def require_seconds(checkpoint_every: float | None) -> float | None:
    """The time between two checkpoints, if it is one."""
    if checkpoint_every is not None and not checkpoint_every >= 0:
        raise AttarError(f"checkpoint_every must be a number of seconds, 0 or more, got {checkpoint_every}.")
    return checkpoint_every


Handler = Callable[[int, FrameType | None], object] | int


def _handlers() -> dict[signal.Signals, Handler]:
    """What these signals do now; those that are ignored, or not ours to handle, are left out."""
    if threading.current_thread() is not threading.main_thread():
        return {}
    found = {number: signal.getsignal(number) for number in STOPS}
    return {number: what for number, what in found.items() if what not in (signal.SIG_IGN, None)}


def _handle(handlers: dict[signal.Signals, Handler]) -> None:
    for number, what in handlers.items():
        signal.signal(number, what)
