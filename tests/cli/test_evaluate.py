"""`attar evaluate`: scores, further questions, and what bad input says."""

import json
import re
from pathlib import Path

import torch
from safetensors.torch import save_file

from attar.assess.questions import Assessment
from attar.infer import Draws
from tests.cli.conftest import Attar


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


def test_a_coreset_for_other_data_is_refused(attar: Attar, coreset: Path, table: Path) -> None:
    done = attar("evaluate", coreset, table)
    assert done.code == 2
    assert "2 and shape (2,)" in done.err


def test_evaluate_refuses_a_foreign_file(attar: Attar, tmp_path: Path) -> None:
    foreign = tmp_path / "x.safetensors"
    foreign.write_bytes(b"\x00" * 100)
    assert attar("evaluate", foreign, "digits").code == 2


def test_a_posterior_of_an_earlier_version_names_the_command_that_makes_one(attar: Attar, tmp_path: Path) -> None:
    path, header = tmp_path / "p.safetensors", {"format": "attar-posterior-1", "domain": "{}", "network": "mlp"}
    save_file({"theta": torch.zeros(2, 3)}, path, header | {"notes": "{}"})
    done = attar("evaluate", path, "digits")
    assert done.code == 2
    assert "was written by another version of Attar: make it again with `attar infer`" in done.err
    save_file({"x": torch.zeros(2, 3)}, path, {"format": "attar-coreset-1"})
    assert "make it again with `attar reduce`" in attar("evaluate", path, "digits").err


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


def test_the_test_set_may_be_a_file_of_its_own(attar: Attar, table: Path, tmp_path: Path) -> None:
    path = tmp_path / "c.safetensors"
    assert attar("reduce", table, "-m", "uniform", "-n", "4", "--test", table, "-o", path).code == 0
    few = ("--seeds", "0", "--draws", "1", "--train-steps", "3", "--device", "cpu")
    done = attar("evaluate", path, table, "--test", table, *few)
    assert "40 test examples, 1 seed" in done.out
    assert "warning" not in done.err  # it was made from the same training examples
    assert "warning: This coreset was made from other training data" in attar("evaluate", path, table, *few).err


def test_a_device_that_is_not_there_is_refused(attar: Attar, coreset: Path) -> None:
    done = attar("evaluate", coreset, "digits", "--device", "tpu9")
    assert done.code == 2
    assert "use --device cpu" in done.err


def test_out_of_distribution_detection_is_called_so(attar: Attar, coreset: Path) -> None:
    done = attar("evaluate", coreset, "digits", "--seeds", "0", "--draws", "1", "--ood", "digits")
    assert "out-of-distribution detection, digits: AUROC 0.500" in done.out
