"""Arrow and Parquet files are read to their end in another process before they are read in this one."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from attar.core import budget
from attar.core.errors import AttarError
from attar.core.files import unread

TOO_MUCH, WRONG, UNREAD = 3, 4, 5  #: exit codes of the program
PROGRAM = Path(__file__).with_name("arrow_child.py")


def verify(paths: Sequence[Path], where: Path) -> None:
    """Raise if one of these files is damaged or takes more memory than files may; claim what they take.

    Args:
        paths: Parquet files, or streams of Arrow.
        where: The source that the user gave.
    """
    command = [sys.executable, "-P", str(PROGRAM), str(budget.left()), *map(str, paths)]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    said = done.stdout.decode(errors="replace").strip()
    if done.returncode in (0, TOO_MUCH):
        budget.claim(int(said) if done.returncode == 0 else budget.left() + 1, str(where))
        return
    if done.returncode == UNREAD:
        raise unread(where, OSError(said))
    reason = said if done.returncode == WRONG else f"the library that reads it failed with {done.returncode}"
    raise AttarError(f"{where} is not a complete table ({reason}): write it again.")
