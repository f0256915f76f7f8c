"""The other commands, one after the other as a user would."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from PIL import Image

from attar import Coreset
from attar.assess.questions import Assessment
from attar.cli import main
from attar.infer import Draws, infer
from tests.cli.conftest import Attar


def test_methods_lists_all_and_explains_one(attar: Attar) -> None:
    text = attar("methods").out
    assert all(name in text for name in ("uniform", "herding", "dm", "dc", "ensemble", "pixels"))
    one = attar("methods", "dc").out
    assert "--net-lr" in one
    assert "int ≥ 1" in one
    assert attar("methods", "hurding").code == 2


def test_infer_then_evaluate(attar: Attar, coreset: Path, tmp_path: Path) -> None:
    posterior = tmp_path / "p.safetensors"
    assert attar("infer", coreset, "-o", posterior, "--draws", "2").code == 0
    assert Draws.load(posterior).theta.shape[0] == 2
    done = attar("evaluate", posterior, "digits", "-o", tmp_path / "s.json")
    assert re.search(r"accuracy 0\.\d+", done.out)
    assert "359 test examples, 1 seed" in done.out
    assert 0 < json.loads((tmp_path / "s.json").read_text())["scores"]["accuracy"] < 1


def test_evaluate_a_coreset_over_seeds(attar: Attar, coreset: Path) -> None:
    done = attar("evaluate", coreset, "digits", "--seeds", "0,1", "--draws", "1")
    assert re.search(r"accuracy 0\.\d+ ± 0\.\d+", done.out)
    assert "2 seeds" in done.out


def test_a_coreset_for_other_data_is_refused(attar: Attar, coreset: Path, tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text("a,b,label\n" + "".join(f"{k},{k % 7},{'xy'[k % 2]}\n" for k in range(40)))
    done = attar("evaluate", coreset, table)
    assert done.code == 2
    assert "2 of shape (2,)" in done.err


def test_evaluate_refuses_a_foreign_file(attar: Attar, tmp_path: Path) -> None:
    foreign = tmp_path / "x.safetensors"
    foreign.write_bytes(b"\x00" * 100)
    assert attar("evaluate", foreign, "digits").code == 2


def test_show_draws_every_class_and_writes_a_png(attar: Attar, coreset: Path, tmp_path: Path) -> None:
    done = attar("show", coreset, "--png", tmp_path / "sheet.png")
    assert "20 examples of digits by uniform" in done.out
    assert "▀" in done.out
    with Image.open(tmp_path / "sheet.png") as sheet:
        assert min(sheet.size) > 20


def test_show_of_feature_vectors_is_a_table(attar: Attar, tmp_path: Path) -> None:
    table, path = tmp_path / "t.csv", tmp_path / "c.safetensors"
    table.write_text("a,b,label\n" + "".join(f"{k},{k % 7},{'xy'[k % 2]}\n" for k in range(40)))
    assert attar("reduce", table, "-m", "uniform", "-n", "2", "-o", path).code == 0
    assert "x0" in attar("show", path).out
    assert attar("show", path, "--png", tmp_path / "s.png").code == 2


def test_export_by_suffix(attar: Attar, coreset: Path, tmp_path: Path) -> None:
    assert attar("export", coreset, tmp_path / "c.npz").code == 0
    assert (tmp_path / "c.npz").exists()
    assert attar("export", coreset, tmp_path / "c.xyz").code == 2


def test_what_nobody_thought_of_is_one_line_with_the_way_to_see_more(
    attar: Attar, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(method: str | None, sampler: str | None) -> None:
        raise ZeroDivisionError("[/red] by zero")

    monkeypatch.setattr("attar.cli.build", broken)
    done = attar("methods")
    assert done.code == 1
    assert done.err == "attar: ZeroDivisionError: [/red] by zero. Nobody thought of this: --debug shows where.\n"
    with pytest.raises(ZeroDivisionError, match="by zero"):
        main(["methods", "--debug"])


def test_a_coreset_loaded_from_the_cli_knows_its_cost(coreset: Path) -> None:
    assert Coreset.load(coreset).recipe.cost.wall > 0


def test_evaluate_answers_every_question_and_the_report_shows_them(attar: Attar, coreset: Path, tmp_path: Path) -> None:
    answers = tmp_path / "answers.json"
    asked = ("--calibrate", "--distance", "--corruption", "--attack", "pgd", "--networks", "mlp,lenet", "--fairness")
    few = ("--seeds", "0", "--draws", "1", "--limit", "20", "--ood", "digits", "-o", answers)
    done = attar("evaluate", coreset, "digits", *asked, *few)
    assert done.code == 0
    for word in ("at temperature", "to the full data", "gaussian", "pgd", "mlp", "IOR", "AUROC"):
        assert word in done.out
    found = Assessment.load(answers)
    assert len(found.corruption) == 90
    assert found.attacks[0].robust <= found.attacks[0].clean
    assert found.detection["digits"] == pytest.approx(0.5)  # a set cannot be told from itself
    assert [row.network for row in found.transfer if row.accuracy is None] == ["lenet"]  # 8×8 is too small for it
    page = tmp_path / "r.html"
    assert attar("report", coreset, "-a", answers, "-o", page, "--evaluations", "1", "--draws", "1").code == 0
    assert "pgd" in page.read_text()


def test_a_posterior_cannot_be_asked_what_needs_its_coreset(attar: Attar, coreset: Path, tmp_path: Path) -> None:
    posterior = tmp_path / "p.safetensors"
    attar("infer", coreset, "-o", posterior, "--draws", "1")
    done = attar("evaluate", posterior, "digits", "--fairness")
    assert done.code == 2
    assert "evaluate its file" in done.err


def test_evaluate_uses_the_training_and_network_it_is_given(attar: Attar, coreset: Path, tmp_path: Path) -> None:
    def accuracy(*words: object) -> float:
        attar("evaluate", coreset, "digits", "--seeds", "0", "--draws", "1", *words, "-o", tmp_path / "a.json")
        return Assessment.load(tmp_path / "a.json").scores.nll

    assert len({accuracy(), accuracy("--train-lr", "0.3"), accuracy("--network", "linear")}) == 3


def test_a_learnt_step_size_and_an_experts_label_reach_the_command_line(
    attar: Attar, coreset: Path, tmp_path: Path
) -> None:
    learnt, file = replace(Coreset.load(coreset), step_size=0.3), tmp_path / "learnt.safetensors"
    learnt.save(file)
    attar("infer", file, "-o", tmp_path / "p.safetensors", "--draws", "1")
    assert torch.equal(Draws.load(tmp_path / "p.safetensors").theta, infer(learnt, draws=1).theta)
    experts = infer(learnt, draws=1, start="experts", experts=infer(learnt, draws=2).theta)
    experts.save(tmp_path / "e.safetensors")
    assert "[started from full-data experts]" in attar("evaluate", tmp_path / "e.safetensors", "digits").out


def test_evaluate_puts_its_questions_with_the_sampler_s_options(attar: Attar, coreset: Path, tmp_path: Path) -> None:
    def transferred(*options: object) -> float | None:
        words = (
            "--seeds",
            "0",
            "--draws",
            "2",
            "--networks",
            "linear",
            "--train-steps",
            "5",
            "-o",
            tmp_path / "a.json",
        )
        assert attar("evaluate", coreset, "digits", "-s", "laplace", *options, *words).code == 0
        return Assessment.load(tmp_path / "a.json").transfer[0].nll

    assert transferred() != transferred("--precision", "0.001")


def test_a_network_that_cannot_predict_one_by_one_is_refused_with_a_remedy(attar: Attar, coreset: Path) -> None:
    done = attar("evaluate", coreset, "digits", "--network", "convnet-d1w4-batch")
    assert done.code == 2
    assert "use convnet-d1w4 for inference" in done.err


def test_text_from_files_is_printed_as_it_is(attar: Attar, tmp_path: Path) -> None:
    table, path = tmp_path / "t.csv", tmp_path / "c[/x].safetensors"
    table.write_text("a,b,label\n" + "".join(f"{k},{k % 7},{('[/red]x', 'y')[k % 2]}\n" for k in range(40)))
    assert attar("reduce", table, "-m", "uniform", "-n", "1", "-o", path).code == 0
    assert "[/red]x" in attar("show", path).out
