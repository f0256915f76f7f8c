"""Files that are either whole or not there: written to a temporary name, synced and renamed."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from attar.core.errors import AttarError


@contextmanager
def atomic(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path beside ``path``; what was written there replaces ``path`` only if all went well."""
    target = Path(path)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=target.suffix)
    except OSError as error:
        raise _unwritable(target, error) from error
    os.close(handle)
    part = Path(name)
    try:
        yield part
        with part.open("rb+") as file:
            os.fsync(file.fileno())
        part.chmod(0o666 & ~_umask())
        part.replace(target)
        _sync_folder(target.parent)
    except (OSError, SafetensorError) as error:
        raise _unwritable(target, error) from error
    finally:
        with suppress(FileNotFoundError):
            part.unlink()


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
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"), parse_constant=_no_number)
    except FileNotFoundError:
        raise AttarError(f"There is no file {path}: check the path.") from None
    except OSError as error:
        raise AttarError(f"Could not read {path} ({error}): check the path.") from error
    except (ValueError, RecursionError) as error:
        raise AttarError(f"{path} is not JSON ({error}): write it again.") from error


def write_tensors(path: str | Path, tensors: Mapping[str, Tensor], header: Mapping[str, str]) -> None:
    """One safetensors file with text in its header; what ``read_tensors`` would refuse is not written."""
    # Cloned, since the format refuses tensors that share memory.
    plain = {name: t.detach().cpu().clone(memory_format=torch.contiguous_format) for name, t in tensors.items()}
    _require_finite(path, plain)
    with atomic(path) as part:
        safetensors.torch.save_file(plain, part, metadata=dict(header))


def read_tensors(path: str | Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors and the header of a safetensors file; float tensors must be finite."""
    # Cloned, since they would else be windows onto the file, and change or crash with it.
    if not Path(path).is_file():
        raise AttarError(f"There is no file {path}: check the path.")
    try:
        with safe_open(path, framework="pt") as file:
            tensors = {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118 (not a dict)
            header = file.metadata() or {}
    except (SafetensorError, OSError, ValueError, RuntimeError) as error:
        raise AttarError(f"{path} is not a whole safetensors file ({error}): write or copy it again.") from error
    _require_finite(path, tensors)
    return tensors, header


def _require_finite(path: str | Path, tensors: Mapping[str, Tensor]) -> None:
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and tensor.itemsize < 2:
            raise AttarError(f"{path} holds {tensor.dtype} in {name!r}: use float16 or wider.")
        if tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()):
            raise AttarError(f"{path} holds NaN or Inf in {name!r}: write it again from finite data.")


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is no JSON number")


def _unwritable(path: Path, error: Exception) -> AttarError:
    return AttarError(f"Could not write {path} ({error}): free space or choose another place; nothing was replaced.")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
