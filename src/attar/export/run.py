"""Export a coreset in any format."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from attar.core.errors import AttarError, unknown
from attar.core.files import atomic
from attar.coreset import Coreset
from attar.export.hub import write_hub
from attar.export.numbers import write_csv, write_npz, write_parquet
from attar.export.pictures import write_folder, write_sheet
from attar.export.place import new_folder

Write = Callable[[Coreset, Path], None]

FILES: dict[str, Write] = {"csv": write_csv, "npz": write_npz, "parquet": write_parquet, "png": write_sheet}
FOLDERS: dict[str, Write] = {"folder": write_folder, "hf": write_hub}


def export(coreset: Coreset, path: str | Path, kind: str | None = None) -> Path:
    """Write a coreset for other programs, in the units of the original data.

    Writing is atomic. An existing file is replaced; a folder that is not empty is refused. ``npz`` holds soft labels
    and weights as arrays, ``parquet`` in its metadata, ``csv``, ``folder`` and ``hf`` in their list of examples; beside
    the examples themselves stands the most likely class. ``png`` warns of what it leaves out.

    Args:
        coreset: What to write.
        path: The file to write, or the folder for the kinds ``folder`` and ``hf``.
        kind: ``npz`` (arrays), ``parquet`` (a table), ``csv`` (row, index, label, class and weight of every example,
            and the values of a table or the text), ``png`` (a contact sheet), ``folder`` (a folder of PNG images for
            each class) or ``hf`` (a Hugging Face data set with its card); by default from the suffix of ``path``.

    Returns:
        Where it was written.
    """
    target, kind = Path(path), kind or _kind(Path(path))
    if kind not in FILES | FOLDERS:
        raise unknown("export", kind, FILES | FOLDERS)
    with atomic(target) if kind in FILES else new_folder(target) as part:
        (FILES | FOLDERS)[kind](coreset.to("cpu"), part)
    return target


def _kind(path: Path) -> str:
    if not path.suffix:
        raise AttarError(f"{path} has no suffix that gives the format: pass a kind, such as folder or hf.")
    return path.suffix[1:].lower()
