"""`attar check`: whether files are what was written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from attar.board.records import CHECKSUM, digest
from attar.cli.console import err, out
from attar.condense.film import FORMAT as FILM
from attar.condense.film import Film
from attar.core.checksum import require_intact
from attar.core.errors import AttarError, DamagedFile
from attar.core.files import read_json, read_tensors
from attar.coreset import FORMAT as CORESET
from attar.coreset import Coreset
from attar.infer.contract import FORMAT as POSTERIOR
from attar.infer.contract import Draws

Files = Annotated[list[Path], typer.Argument(help="Files, or folders of them.", metavar="FILE", show_default=False)]
READERS: dict[str, tuple[str, Callable[[Path], object]]] = {
    CORESET: ("coreset", Coreset.load),
    POSTERIOR: ("posterior", Draws.load),
    FILM: ("film", Film.load),
}
SUFFIXES = (".safetensors", ".json")


def check(files: Files) -> None:
    """Check that files are whole and unchanged since they were written.

    Every file of tensors that Attar writes (coresets, posteriors, checkpoints, experts, films) holds checksums of its
    header and its content, and so does every record of the board. Files are read whole, nothing is changed, and the
    exit code is 2 if any is damaged:

        attar check d.safetensors
        attar check comparison ~/.cache/attar/experts

    In a folder, all .safetensors and .json files are checked. Reading any of these files checks it too; this command
    names all damaged files at once, such as after a copy or a crash of a disk. Equal runs give equal files, so that
    files of two machines can also be compared with sha256sum.
    """
    found = [path for file in files for path in _inside(file)]
    bad = 0
    for path in found:
        try:
            out.print(f"{path}: {_kind(path)}", soft_wrap=True, highlight=False)
        except AttarError as error:
            bad += 1
            err.print(str(error), style="red", soft_wrap=True, highlight=False)
    if bad:
        raise AttarError(f"{bad} of {len(found)} files cannot be used: copy or make them again.")


def _inside(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    found = sorted(file for file in path.rglob("*") if file.suffix in SUFFIXES and file.is_file())
    if not found:
        raise AttarError(f"{path} holds no .safetensors or .json file: check the path.")
    return found


def _json(path: Path) -> str:
    found = read_json(path)
    if not isinstance(found, dict) or CHECKSUM not in found:
        return "JSON, readable (it has no checksum)"
    if found[CHECKSUM] != digest(found):
        raise DamagedFile(path, "was changed after it was written", "restore it.")
    return "record of the board, intact"


def _kind(path: Path) -> str:
    """What a file is, after reading it whole."""
    if path.suffix == ".json":
        return _json(path)
    _, header = read_tensors(path)
    kind = "trajectory" if "expert" in header else "checkpoint" if "identity" in header else "tensors"
    if header.get("format") in READERS:
        kind, read = READERS[header["format"]]
        read(path)
    return f"{kind}, intact" if require_intact(path, content=False) else f"{kind}, readable (it has no checksum)"
