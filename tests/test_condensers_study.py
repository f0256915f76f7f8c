"""What the study of condensation says beside its table, on digits."""

from dataclasses import replace
from pathlib import Path

from attar.condense.label_solve import LabelSolve
from attar.nets.train import Training
from attar.study import StudySpec, compare
from benchmarks.condensers import kernel_ridge, otherwise


def test_coresets_are_judged_by_kernel_regression_and_by_the_inference_of_another_method(tmp_path: Path) -> None:
    spec = StudySpec(
        "digits", methods="label-solve", per_class=10, seeds=0, network="mlp-d1w8", draws=1, converged=False
    )
    study = compare(replace(spec, training=Training(steps=5)), folder=tmp_path)
    found = kernel_ridge(study, tmp_path, real=500)
    assert found["real"] == 500
    accuracy, weak, strong = (
        {row["method"]: row["mean"] for row in found[name]} for name in ("accuracy", "weak", "strong")
    )
    assert set(accuracy) == {"uniform", "label-solve"}
    assert 0.8 < accuracy["uniform"] < accuracy["label-solve"] < found["accuracy_of_real"] <= 1
    assert 0 < strong["label-solve"] < strong["uniform"]
    assert 0 < weak["label-solve"] < weak["uniform"]
    learnt = otherwise(study, tmp_path, ("uniform",), LabelSolve().inference)
    assert [row["method"] for row in learnt["table"]] == ["uniform"]
