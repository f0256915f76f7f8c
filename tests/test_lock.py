"""The locks: a hash for every package, the versions of constraints.txt, and no address of an index."""

import re

import pytest

from lock import LOCKS, lines
from tests.known import ROOT

LINE = re.compile(r"([a-z0-9-]+)==(\S+) --hash=sha256:[0-9a-f]{64}")


def pinned() -> dict[str, str]:
    found = re.findall(r"^([\w.-]+)==(\S+)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    return {re.sub(r"[-_.]+", "-", name).lower(): version for name, version in found}


@pytest.mark.parametrize("file", LOCKS)
def test_every_package_has_a_hash_and_the_version_of_the_constraints(file: str) -> None:
    head, *rest = (ROOT / file).read_text().splitlines()
    assert re.fullmatch(r"# for cpython-\d+ \S+", head)
    found = [LINE.fullmatch(line) for line in rest if not line.startswith("#")]
    assert len(found) > 15
    versions = {match[1]: match[2] for match in found if match is not None}
    assert len(versions) == len(found)
    known = pinned()
    differ = {name: version for name, version in versions.items() if known.get(name, version) != version}
    assert not differ, "run `make lock`"
    assert not re.search(r"://|index-url", (ROOT / file).read_text())


def test_lines_come_from_what_pip_reports() -> None:
    def item(name: str, version: str) -> dict[str, object]:
        sums = {"archive_info": {"hashes": {"sha256": "a" * 64}}, "url": "https://host/a.whl"}
        return {"metadata": {"name": name, "version": version}, "download_info": sums}

    report = {"install": [item("Some_Thing", "1.0"), item("torch", "2.0"), item("attar", "0.1"), item("a.b", "3")]}
    assert lines(report) == {  # type: ignore[arg-type]
        "a-b": f"a-b==3 --hash=sha256:{'a' * 64}",
        "some-thing": f"some-thing==1.0 --hash=sha256:{'a' * 64}",
    }


def test_the_build_backend_is_pinned() -> None:
    assert re.search(r'^requires = \["hatchling==[\d.]+"\]$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
