import signal
import sys
import threading
from pathlib import Path

import pytest
import torch

from attar.core.errors import AttarError
from attar.core.files import open_tensors, write_tensors
from attar.core.signals import STOPS, Interrupted, held, raised, require_seconds
from tests.known import HANG, python


@pytest.mark.parametrize("number", STOPS)
def test_a_signal_raises_and_is_then_what_it_was(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with pytest.raises(Interrupted) as caught, raised():
        signal.raise_signal(number)
    assert caught.value.number == number
    assert signal.getsignal(number) is before


@pytest.mark.parametrize("number", STOPS)
def test_a_signal_that_a_library_takes_for_an_error_is_still_the_signal(number: signal.Signals) -> None:
    def read() -> None:
        try:
            signal.raise_signal(number)
        except KeyboardInterrupt:
            raise ValueError("could not determine the shape") from None  # so does PyTorch

    with pytest.raises(Interrupted) as caught, raised():
        read()
    assert caught.value.number == number
    with pytest.raises(ValueError, match="no signal"), raised():
        raise ValueError("no signal")


@pytest.mark.parametrize("number", STOPS)
def test_a_signal_where_errors_are_ignored_comes_again(
    number: signal.Signals, capsys: pytest.CaptureFixture[str]
) -> None:
    class Dying:
        def __del__(self) -> None:
            signal.raise_signal(number)

    def work() -> None:
        Dying()
        threading.Event().wait(HANG)

    before = sys.unraisablehook
    with pytest.raises(Interrupted) as caught, raised():
        work()
    assert caught.value.number == number
    assert "ignored" not in capsys.readouterr().err
    assert sys.unraisablehook is before


@pytest.mark.parametrize("number", STOPS)
def test_a_signal_in_the_hook_of_ignored_errors_comes_again(
    number: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Found(int):
        exc_value = property(signal.raise_signal)  # compiled, so that the hook's own frame is the current one

    told: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", told.append)

    def work() -> None:
        vars(sys)["unraisablehook"](found)
        told.append("gone on")
        threading.Event().wait(HANG)

    found = Found(number)
    with pytest.raises(Interrupted) as caught, raised():
        work()
    assert caught.value.number == number
    assert told == [found, "gone on"]


@pytest.mark.parametrize("number", STOPS)
def test_a_signal_waits_until_a_file_of_tensors_is_read(number: signal.Signals, tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    write_tensors(path, {"x": torch.ones(2)}, {})
    read = []

    def halfway(fail: bool) -> None:
        with open_tensors(path) as file:
            signal.raise_signal(number)
            read.append(file.get_tensor("x").tolist())
            if fail:
                raise RuntimeError("which would be reported as a file that cannot be read")

    for fail in (False, True):
        with pytest.raises(Interrupted) as caught, raised():
            halfway(fail)
        assert caught.value.number == number
    assert read == [[1.0, 1.0]] * 2


@pytest.mark.parametrize("number", STOPS)
def test_a_held_signal_waits_until_the_work_is_saved(number: signal.Signals) -> None:
    with raised(), held() as stop:
        signal.raise_signal(number)
        assert stop.number == number
        with pytest.raises(Interrupted, match="all is saved") as caught:
            stop.act("all is saved")
    assert caught.value.number == number


def test_a_second_signal_acts_at_once() -> None:
    with raised(), held():
        signal.raise_signal(signal.SIGTERM)
        with pytest.raises(Interrupted) as caught:
            signal.raise_signal(signal.SIGHUP)
    assert (caught.value.number, str(caught.value)) == (signal.SIGHUP, "")


def test_without_a_signal_nothing_happens() -> None:
    with held() as stop:
        stop.act("nothing")


def test_a_program_with_a_handler_of_its_own_goes_on_and_later_signals_are_held_too() -> None:
    heard = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: heard.append(number))
    try:
        with held() as stop:
            for count in (1, 2):
                signal.raise_signal(signal.SIGTERM)
                assert len(heard) == count - 1
                stop.act("saved")
                assert len(heard) == count
                assert stop.number is None
    finally:
        signal.signal(signal.SIGTERM, before)


def test_what_is_ignored_stays_ignored_as_under_nohup() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with raised(), held() as stop:
            signal.raise_signal(signal.SIGHUP)
            assert stop.number is None
    finally:
        signal.signal(signal.SIGHUP, before)


DIES = """
import os, signal, sys
from pathlib import Path
from attar.core.signals import held
with held() as stop:
    os.kill(os.getpid(), signal.SIGTERM)
    Path(sys.argv[1]).touch()
    stop.act("saved")
Path(sys.argv[1]).unlink()
"""


def test_a_program_without_handlers_saves_and_then_ends_by_the_signal(tmp_path: Path) -> None:
    process = python(DIES, tmp_path / "saved")
    process.communicate(timeout=HANG)
    assert process.returncode == -signal.SIGTERM
    assert (tmp_path / "saved").exists()


@pytest.mark.parametrize("seconds", [-1.0, float("nan")])
def test_a_time_between_checkpoints_must_be_one(seconds: float) -> None:
    with pytest.raises(AttarError, match="checkpoint_every must be a number of seconds"):
        require_seconds(seconds)
    assert require_seconds(0.5) == 0.5
