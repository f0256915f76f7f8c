"""`attar export`: the ending or the kind decides the format."""

from pathlib import Path

from tests.cli.conftest import Attar


def test_export_by_suffix_or_kind(attar: Attar, coreset: Path, tmp_path: Path) -> None:
    assert attar("export", coreset, tmp_path / "c.npz").code == 0
    assert (tmp_path / "c.npz").exists()
    done = attar("export", coreset, tmp_path / "images", "--kind", "folder")
    assert f"wrote {tmp_path / 'images'}" in done.out
    assert len(list((tmp_path / "images").glob("*/*.png"))) == 20
    assert attar("export", coreset, tmp_path / "c.xyz").code == 2
