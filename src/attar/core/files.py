"""Atomic files: written under a temporary name, synced and renamed."""

from __future__ import annotations

import errno
import json
import os
import re
import stat
import tomllib
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from attar.core import budget, checksum
from attar.core.errors import REMEDIES, AttarError, DamagedFile, MissingFile
from attar.core.signals import held
from attar.core.temporary import temporary

CHECKSUMS = (checksum.CONTENT, checksum.HEADER)  #: entries of headers that readers do not show
LARGEST = 1e100  #: a number in JSON that we read
PIPED = 1 << 22  #: bytes that are read from a pipe at most
SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")  #: escapes of JSON for half a character


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
        raise unwritten(target, error) from error


def unwritten(path: str | Path, error: Exception) -> AttarError:
    """The error for a file that could not be written, with the remedy."""
    number = error.errno if isinstance(error, OSError) else None
    remedy = REMEDIES.get(number or 0, "free space or choose another place")
    kept = "; what is there is unchanged" if os.path.lexists(path) else ""
    return AttarError(f"Could not write {path} ({error}): {remedy}{kept}.")


def sync(path: Path) -> None:
    """Wait until a file's content, or a folder's list of names, is on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def set_aside(damaged: DamagedFile, instead: str) -> None:
    """Rename a damaged file to a name that no reader uses, and warn.

    Args:
        damaged: The error that reading the file raised.
        instead: What happens next; ends the warning's sentence.
    """
    path = damaged.path
    names = (path.with_name(f"{path.name}.unreadable-{number}") for number in count(1))
    kept = next(name for name in names if not os.path.lexists(name))
    try:
        path.rename(kept)
    except OSError as error:
        raise AttarError(f"{path} {damaged.problem} and cannot be renamed ({error}): move it away.") from error
    warnings.warn(f"{path} {damaged.problem}: it is kept as {kept.name}, and {instead}.", stacklevel=3)


def inside(folder: Path, name: str) -> Path | None:
    """The file of this name in ``folder`` or below; None if there is none or if the name, from a file, leads out."""
    try:
        path = (folder / name).resolve()
        return path if path.is_relative_to(folder.resolve()) and path.is_file() else None
    except (OSError, ValueError, RuntimeError):  # names that no file can have
        return None


def write_text(path: str | Path, text: str) -> None:
    with atomic(path) as part:
        part.write_text(text, encoding="utf-8", errors="backslashreplace")  # names of files may be no Unicode


def write_json(path: str | Path, value: Any) -> None:
    try:
        text = json.dumps(value, indent=2, allow_nan=False)
    except ValueError as error:
        raise AttarError(f"Could not write {path} ({error}): JSON holds finite numbers only.") from error
    write_text(path, text + "\n")


def read_json(path: str | Path) -> Any:
    """The content of a JSON file; raises ``MissingFile`` if there is none and ``DamagedFile`` if it is not JSON."""
    text = read_bytes(path, budget.PARSED)
    try:
        return parsed(text.decode())
    except ValueError as error:
        raise DamagedFile(path, f"is not JSON ({error})", "write it again.") from error


def parsed(text: str, finite: bool = True) -> Any:
    """The value of JSON text; raises ValueError if it is no JSON, nested too deep, or holds halves of characters.

    Args:
        text: The text.
        finite: Whether NaN and Infinity, which are not JSON but which Python writes, are refused, and numbers beyond
            any that arithmetic with them would leave finite.
    """
    try:
        value = json.loads(text, parse_constant=_no_number if finite else None, parse_float=_number if finite else None)
    except RecursionError as error:
        raise ValueError("nested too deep") from error
    budget.nested(value)
    if SURROGATE.search(text):  # the only way to them, as the text itself was decoded
        json.dumps(value, ensure_ascii=False).encode()
    return value


def read_toml(path: str | Path) -> dict[str, Any]:
    """The content of a TOML file; raises ``MissingFile`` if there is none and ``DamagedFile`` if it is not TOML."""
    text = read_bytes(path, budget.PARSED)
    try:
        value = tomllib.loads(text.decode())
        budget.nested(value)
    except (ValueError, RecursionError) as error:  # tomllib's and decoding errors are ValueErrors
        raise DamagedFile(path, f"is not TOML ({error})", "correct it.") from error
    return value


def read_bytes(path: str | Path, each: int = 1) -> bytes:
    """The content of a file.

    Args:
        path: The file, or a pipe; devices that have no end are refused.
        each: Bytes of memory per byte of the file that what is made of it takes; claimed before it is read.
    """
    try:
        about = Path(path).stat()
        size = about.st_size if stat.S_ISREG(about.st_mode) else PIPED
        budget.claim(each * size, str(path), passing=size)
        with Path(path).open("rb") as file:
            content = file.read(size + 1)
    except OSError as error:
        raise unread(path, error) from error
    if len(content) > size:
        raise AttarError(f"{path} is a device, or longer than {size:,} bytes: check the path and try again.")
    return content


def write_tensors(path: str | Path, tensors: Mapping[str, Tensor], header: Mapping[str, str]) -> None:
    """Write one safetensors file with text in its header, and checksums; refuses what ``read_tensors`` would refuse.

    The same content gives the same bytes.
    """
    plain = {name: tensor.detach().cpu() for name, tensor in tensors.items()}
    if problem := next(_unusable(plain), None):
        raise AttarError(f"{path} {problem[0]}: {problem[1]}")
    with atomic(path) as part:
        checksum.write(part, plain, header)


def read_tensors(path: str | Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors and the header of a safetensors file; float tensors must be finite.

    A file that changed after it was written is damaged. Files of other programs have no checksum, and are not checked.
    """
    # Cloned: otherwise they would map the file, and change or crash with it.
    with open_tensors(path, whole=True) as file:
        tensors = {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118 (not a dict)
        header = {name: text for name, text in (file.metadata() or {}).items() if name not in CHECKSUMS}
    if problem := next(_unusable(tensors), None):
        raise DamagedFile(path, *problem)
    return tensors, header


@contextmanager
def open_tensors(path: str | Path, whole: bool = False) -> Iterator[Any]:
    """A safetensors file (``safe_open``), to read parts of it.

    Its header is compared with its checksum, and with ``whole`` its tensors, too.

    Raises ``MissingFile`` if there is none, and ``DamagedFile`` if its content is not safetensors. Every other failure,
    such as too many open files or a disk that does not respond, is a plain ``AttarError``: the file may be intact.
    """
    with held() as stop:  # raised while a library reads, a signal would look like damage
        try:
            with _opened(path, whole) as file:
                yield file
        finally:
            stop.act("")


@contextmanager
def _opened(path: str | Path, whole: bool) -> Iterator[Any]:
    try:  # first, because safe_open reports every failure to open a file as a missing file
        if not stat.S_ISREG(Path(path).stat().st_mode):
            raise AttarError(f"{path} is a folder or a device, not a file: check the path.")
        if whole:
            budget.claim(Path(path).stat().st_size, str(path))
        checksum.require_intact(Path(path), whole)
    except OSError as error:
        raise unread(path, error) from error
    except checksum.Changed as error:
        raise DamagedFile(path, f"is damaged ({error})", "copy it again, or make it again.") from error
    try:
        with safe_open(path, framework="pt") as file:
            for name in file.keys():  # noqa: SIM118 (not a dict)
                if len(file.get_slice(name).get_shape()) > budget.MOST_DIMENSIONS:
                    raise DamagedFile(path, f"holds {name!r} of too many dimensions", "write it with at most 8.")
            yield file
    except SafetensorError as error:
        problem = f"is not a complete safetensors file ({error})"
        raise DamagedFile(path, problem, "write or copy it again.") from error
    except (OSError, RuntimeError) as error:
        raise unread(path, error) from error


def _unusable(tensors: Mapping[str, Tensor]) -> Iterator[tuple[str, str]]:
    """Problems for which tensors are refused, with the remedy of each."""
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and tensor.itemsize < 2:
            yield f"holds {tensor.dtype} in {name!r}", "use float16 or wider."
        elif tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()):
            yield f"holds NaN or Inf in {name!r}", "write it again from finite data."


def unread(path: str | Path, error: Exception) -> AttarError:
    """The error for a file that could not be read, which may be intact."""
    if isinstance(error, FileNotFoundError) and not os.path.lexists(path):
        return MissingFile(f"There is no file {path}: check the path.")
    return AttarError(
        f"Could not read {path} ({error}); the file is unchanged: check the disk, the permissions and the limit of "
        "open files (`ulimit -n`), and try again."
    )


def require_read(path: str | Path, error: Exception) -> None:
    """Raise if an error that a library reported came from the system, so that the file may be intact.

    Without a number it comes from the content; and so does an argument that the system refuses, such as a place before
    the start of the file.
    """
    if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
        raise unread(path, error) from error


def _number(text: str) -> float:
    value = float(text)
    if abs(value) > LARGEST:
        raise ValueError(f"{text[:30]} is too large a number")
    return value


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
