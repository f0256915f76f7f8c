"""``make lock``: write requirements.lock and requirements-dev.lock, the versions of constraints.txt with their hashes.

The hashes are those of the files that pip chooses on this machine, so a lock is for its Python and platform, which its
first line names. PyTorch is left out: its builds for processors and graphics cards have one version and many files.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent
LOCKS = {"requirements.lock": ".", "requirements-dev.lock": ".[dev]"}
APART = {"attar", "torch"}


def platform() -> str:
    """The Python and platform that a lock is for."""
    return f"{sys.implementation.cache_tag} {sysconfig.get_platform()}"


def resolved(what: str) -> dict[str, str]:
    """The files that pip would install, as lines of a lock by name."""
    with tempfile.TemporaryDirectory() as made:
        report = Path(made) / "report.json"
        words = ["install", "--quiet", "--dry-run", "--ignore-installed", "--report", report]
        command = [sys.executable, "-m", "pip", *words, "--constraint", "constraints.txt", "--editable", what]
        subprocess.run(command, check=True, cwd=ROOT)
        return lines(json.loads(report.read_text()))


def lines(report: dict[str, list[dict[str, dict[str, dict[str, dict[str, str]]]]]]) -> dict[str, str]:
    """The lines of a lock from what pip reports."""
    found = {}
    for item in report["install"]:
        about = item["metadata"]
        name = re.sub(r"[-_.]+", "-", str(about["name"])).lower()
        if name not in APART:
            digest = item["download_info"]["archive_info"]["hashes"]["sha256"]
            found[name] = f"{name}=={about['version']} --hash=sha256:{digest}"
    return dict(sorted(found.items()))


def main() -> None:
    """Write both."""
    if sys.argv[1:] == ["--platform"]:
        print(platform())
        return
    for file, what in LOCKS.items():
        head = [f"# for {platform()}", "# Written by `make lock`; the versions are those of constraints.txt."]
        (ROOT / file).write_text("\n".join([*head, *resolved(what).values()]) + "\n")


if __name__ == "__main__":
    main()
