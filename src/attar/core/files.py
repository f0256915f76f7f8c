"""Files that are either whole or not there: written to a temporary name, synced and renamed."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import shutil
import stat
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from attar.core.errors import AttarError, DamagedFile, MissingFile

TEMPORARY = ".attar-tmp"  #: how the names of temporary folders end; no reader looks for it


@contextmanager
def atomic(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path for a file; what was written there replaces ``path`` only if all went well."""
    target = Path(path)
    try:
        with temporary(target) as part:
            yield part
            sync(part)
            part.chmod(0o666 & ~_umask())
            part.replace(target)
        sync(target.parent)
    except (OSError, SafetensorError) as error:
        raise AttarError(
            f"Could not write {target} ({error}): free space or choose another place; nothing was replaced."
        ) from error


@contextmanager
def temporary(target: Path) -> Iterator[Path]:
    """Yield a path with the name of ``target`` in a hidden folder beside it; the folder is removed at the end.

    A folder, since some libraries write temporary files of their own beside the file that they are given. Its name
    says which process made it, and where: what killed processes left is removed when the next file is written there.
    What a running process writes is never touched, nor what comes from another host or container.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    _sweep(target.parent)
    start = f".{target.name[:50]}.{os.getpid()}-{_processes()}."  # short enough for any name that the system allows
    folder = Path(tempfile.mkdtemp(dir=target.parent, prefix=start, suffix=TEMPORARY))
    try:
        yield folder / target.name
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def sync(path: Path) -> None:
    """Wait until a file's content, or a folder's list of names, is on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def set_aside(damaged: DamagedFile, instead: str) -> None:
    """Rename a damaged file to a name that no reader looks for, and warn.

    Args:
        damaged: What was found out about the file.
        instead: What happens now; ends the warning's sentence.
    """
    path = damaged.path
    names = (path.with_name(f"{path.name}.unreadable-{number}") for number in count(1))
    kept = next(name for name in names if not os.path.lexists(name))
    try:
        path.rename(kept)
    except OSError as error:
        raise AttarError(f"{path} {damaged.problem} and cannot be renamed ({error}): move it away.") from error
    warnings.warn(f"{path} {damaged.problem}: it is kept as {kept.name}, and {instead}.", stacklevel=3)


def write_text(path: str | Path, text: str) -> None:
    with atomic(path) as part:
        part.write_text(text, encoding="utf-8")


def write_json(path: str | Path, value: Any) -> None:
    try:
        text = json.dumps(value, indent=2, allow_nan=False)
    except ValueError as error:
        raise AttarError(f"Could not write {path} ({error}): JSON holds finite numbers only.") from error
    write_text(path, text + "\n")


def read_json(path: str | Path) -> Any:
    """The content of a JSON file; ``MissingFile`` and ``DamagedFile`` say that there is none or that it is no JSON."""
    try:
        text = Path(path).read_bytes()
    except OSError as error:
        raise _unread(path, error) from error
    try:
        return json.loads(text.decode(), parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise DamagedFile(path, f"is not JSON ({error})", "write it again.") from error


def write_tensors(path: str | Path, tensors: Mapping[str, Tensor], header: Mapping[str, str]) -> None:
    """One safetensors file with text in its header; what ``read_tensors`` would refuse is not written."""
    # Cloned, since the format refuses tensors that share memory.
    plain = {name: t.detach().cpu().clone(memory_format=torch.contiguous_format) for name, t in tensors.items()}
    if problem := next(_unusable(plain), None):
        raise AttarError(f"{path} {problem[0]}: {problem[1]}")
    with atomic(path) as part:
        safetensors.torch.save_file(plain, part, metadata=dict(header))


def read_tensors(path: str | Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors and the header of a safetensors file; float tensors must be finite."""
    # Cloned, since they would else be windows onto the file, and change or crash with it.
    with open_tensors(path) as file:
        tensors = {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118 (not a dict)
        header = file.metadata() or {}
    if problem := next(_unusable(tensors), None):
        raise DamagedFile(path, *problem)
    return tensors, header


@contextmanager
def open_tensors(path: str | Path) -> Iterator[Any]:
    """A safetensors file (``safe_open``), to read parts of it.

    Raises ``MissingFile`` if there is none, and ``DamagedFile`` if its content is not safetensors. Every other failure,
    such as too many open files or a disk that does not answer, is a plain ``AttarError``: the file may be whole.
    """
    try:  # first, since safe_open reports every failure to open a file as a missing file
        if not stat.S_ISREG(Path(path).stat().st_mode):
            raise AttarError(f"There is no file {path}, but a folder or a device: check the path.")
        Path(path).open("rb").close()
    except OSError as error:
        raise _unread(path, error) from error
    try:
        with safe_open(path, framework="pt") as file:
            yield file
    except SafetensorError as error:
        problem = f"is not a whole safetensors file ({error})"
        raise DamagedFile(path, problem, "write or copy it again.") from error
    except (OSError, RuntimeError) as error:
        raise _unread(path, error) from error


def _unusable(tensors: Mapping[str, Tensor]) -> Iterator[tuple[str, str]]:
    """The problems with tensors that are neither written nor read, and the remedy of each."""
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and tensor.itemsize < 2:
            yield f"holds {tensor.dtype} in {name!r}", "use float16 or wider."
        elif tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()):
            yield f"holds NaN or Inf in {name!r}", "write it again from finite data."


def _unread(path: str | Path, error: Exception) -> AttarError:
    if isinstance(error, FileNotFoundError) and not os.path.lexists(path):
        return MissingFile(f"There is no file {path}: check the path.")
    return AttarError(
        f"Could not read {path} ({error}), and left it as it is: check the disk, the permissions and the limit of open "
        "files (`ulimit -n`), and try again."
    )


def _sweep(place: Path) -> None:
    """Remove the temporary folders in ``place`` whose process is gone."""
    made = re.compile(rf"\..*\.(\d{{1,9}})-{_processes()}\.\w+{re.escape(TEMPORARY)}", re.DOTALL)
    with suppress(OSError):  # writing shows whether the folder can be used
        for path in place.iterdir():
            found = made.fullmatch(path.name)
            if found and not _alive(int(found[1])):
                shutil.rmtree(path, ignore_errors=True)


def _processes() -> str:
    """A mark of the host and container, within which the number of a process means one process."""
    space = Path("/proc/self/ns/pid")  # Linux
    where = f"{platform.node()} {space.readlink() if space.exists() else ''}"
    return hashlib.blake2b(where.encode(), digest_size=4).hexdigest()


def _alive(process: int) -> bool:
    try:
        with suppress(PermissionError):  # it runs, for another user
            os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is no JSON number")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
