"""`attar.report`: one function from a study or a coreset, in memory or in a file, to its page."""

from dataclasses import replace
from pathlib import Path

import pytest

import attar
from attar import Coreset, Split, Study, Training
from attar.assess.questions import Questions, assess
from attar.core.errors import AttarError
from tests.known import images
from tests.report.studies import study as made_up


def split() -> Split:
    data = images(12)
    return Split(data[:18], data[18:24], data[24:])


@pytest.fixture
def coreset(tmp_path: Path) -> Path:
    path = tmp_path / "c.safetensors"
    attar.reduce(split(), "uniform", per_class=2, network="linear", training=Training(steps=3)).save(path)
    return path


def test_a_study_its_file_and_its_folder_give_one_page(tmp_path: Path) -> None:
    folder = tmp_path / "study"
    folder.mkdir()
    made_up(folder).save(folder / "study.json")
    loaded = Study.load(folder / "study.json")
    pages = [
        attar.report(source, tmp_path / f"{number}.html")
        for number, source in enumerate((loaded, folder / "study.json", str(folder)))
    ]
    assert pages == [tmp_path / f"{number}.html" for number in range(3)]
    texts = {page.read_text() for page in pages}
    assert len(texts) == 1
    assert "<img" in texts.pop()  # the pictures of its coresets were found beside its file


def test_a_study_comes_from_compare_with_its_folder(tmp_path: Path) -> None:
    spec = {"methods": [], "per_class": 1, "seeds": 0, "network": "linear", "draws": 1, "training": {"steps": 2}}
    study = attar.compare(spec, data=split(), folder=tmp_path / "study")
    assert "<img" in attar.report(study, tmp_path / "page.html").read_text()


def test_a_study_of_known_data_has_a_map_and_other_data_is_refused(tmp_path: Path) -> None:
    spec = {"data": "digits", "methods": [], "per_class": 1, "seeds": 0, "network": "linear", "draws": 1}
    study = attar.compare(spec | {"training": {"steps": 2}, "converged": False}, folder=tmp_path / "study")
    assert 'class="map-data"' in attar.report(tmp_path / "study", tmp_path / "page.html").read_text()
    with pytest.raises(AttarError, match="not the data of the study"):
        attar.report(study, tmp_path / "other.html", data=split())
    known = attar.load("digits")
    with pytest.raises(AttarError, match="not the data of the study"):
        attar.report(study, tmp_path / "other.html", data=replace(known, test=known.val))
    for file in (tmp_path / "study" / "coresets").iterdir():
        file.unlink()
    assert 'class="map-data"' not in attar.report(study, tmp_path / "page.html").read_text()


def test_a_study_of_given_data_has_a_map_where_that_is_given_again(tmp_path: Path) -> None:
    spec = {"methods": [], "per_class": 1, "seeds": 0, "network": "linear", "draws": 1, "training": {"steps": 2}}
    study = attar.compare(spec | {"converged": False}, data=split(), folder=tmp_path / "study")
    pages = [attar.report(study, tmp_path / "page.html", data=given).read_text() for given in (None, split())]
    assert ['class="map-data"' in page for page in pages] == [False, True]


def test_a_coreset_is_evaluated_beside_baselines_once(coreset: Path, tmp_path: Path) -> None:
    told: list[tuple[str, bool]] = []
    for source in (coreset, Coreset.load(coreset)):
        page = attar.report(
            source,
            tmp_path / "page.html",
            data=split(),
            evaluations=2,
            draws=1,
            watch=lambda part: told.append((part.line.partition(":")[0], part.kept)),
        )
        assert "from converged full data" in page.read_text()
    names = ["uniform-2-0", "herding-2-0", "full-all-0", "full-converged-all-0"]
    assert told == [(name, False) for name in names] + [(name, True) for name in names]
    (folder,) = (tmp_path / "page-files").iterdir()
    assert [run.evaluation for run in Study.load(folder / "study.json").runs] == [0, 1] * 3 + [0]


def test_without_the_converged_full_data_the_page_names_the_one_it_has(coreset: Path, tmp_path: Path) -> None:
    page = attar.report(coreset, tmp_path / "p.html", data=split(), evaluations=1, draws=1, converged=False).read_text()
    assert "from full data with the same training" in page
    assert "converged full data" not in page


def test_answers_come_onto_the_page_from_files_and_objects(coreset: Path, tmp_path: Path) -> None:
    loaded = Coreset.load(coreset)
    answers = assess(loaded, split(), Questions(networks=("mlp-d1w4",)), attar.infer(loaded, draws=1))
    answers.save(tmp_path / "answers.json")
    for number, given in enumerate((answers, tmp_path / "answers.json")):
        page = tmp_path / f"{number}.html"
        attar.report(loaded, page, data=split(), answers=[given], evaluations=1, draws=1)
        assert "mlp-d1w4" in page.read_text()


def test_a_folder_without_a_finished_run_says_how_to_go_on(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(AttarError, match="has no finished result yet: run the same command again"):
        attar.report(tmp_path, tmp_path / "page.html")


def test_data_that_a_file_names_is_not_opened_unasked(coreset: Path, tmp_path: Path) -> None:
    with pytest.raises(AttarError, match="made from rows: pass that data explicitly"):
        attar.report(coreset, tmp_path / "page.html")
    loaded = Coreset.load(coreset)
    with pytest.raises(AttarError, match="No device"):
        attar.report(loaded, tmp_path / "page.html", data=split(), device="nonsense")
    strange = replace(loaded, recipe=replace(loaded.recipe, method="../../evil"))
    with pytest.raises(AttarError, match="Unknown method"):
        attar.report(strange, tmp_path / "page.html", data=split())
    assert not list(tmp_path.rglob("*evil*"))
    with pytest.raises(AttarError, match="There is no file"):
        attar.report(tmp_path / "nothing.json")


def test_a_page_does_not_tell_where_files_lie(tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    table.write_text("a,b,label\n" + "".join(f"{k % 5},{k % 7},{'xy'[k % 2]}\n" for k in range(60)))
    coreset = attar.reduce(attar.load(table), "uniform", per_class=2, network="linear", training=Training(steps=3))
    assert coreset.recipe.origin is not None
    assert coreset.recipe.origin.source == str(table.resolve())
    page = attar.report(coreset, tmp_path / "page.html", data=table, evaluations=1, draws=1)
    assert str(tmp_path) not in page.read_text()
