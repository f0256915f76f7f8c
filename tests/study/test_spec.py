"""TOML, flags and Python build one spec, and what is wrong with it is said before any data is read."""

import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from attar.core.errors import AttarError
from attar.data import Split
from attar.nets.train import Training
from attar.study import StudySpec
from tests.known import ROOT, gaussians

WHOLE = """
data = "train.csv"
test_data = "test.csv"
target = "kind"
imbalance = 10
flip = 0.2
scaling = "zca"
val = 0.2
test = 0.3
vectors = "glove.txt"
length = 12
columns = "age:numeric,size:s<m<l"
resize = "8"
budget = "minimum=2"
methods = ["dm", "short"]
fraction = [0.1, 0.5]
seeds = [3]
network = "CN-D2W16"
training = { steps = 7 }
sampler = "sghmc"
sampler_options = { thin = 2 }
draws = 4
evaluations = 2
experts = "folder"
base = "digits"
transfer = ["mlp"]
baselines = false
protocol = "published"
converged = false

[options]
short = { k = 3 }

[descent]
dm = { steps = 9 }

[variants]
short = "bpc-cd"
"""


def written(text: str, folder: Path) -> Path:
    path = folder / "study.toml"
    path.write_text(text)
    return path


def test_a_file_sets_every_field(tmp_path: Path) -> None:
    spec, usual = StudySpec.read(written(WHOLE, tmp_path)), StudySpec()
    same = [field.name for field in fields(StudySpec) if getattr(spec, field.name) == getattr(usual, field.name)]
    assert same == ["per_class"]  # which fraction replaces
    assert spec.training == Training(steps=7)
    assert spec.network == "convnet-d2w16"  # one spelling, so that a folder is found again
    assert spec.transfer == ("mlp-d2w128",)
    assert spec == StudySpec.of(spec.plain()) == StudySpec.of(spec)
    assert spec.method("short") == "bpc-cd"


def test_one_value_stands_for_a_list_and_repetitions_count_once() -> None:
    spec = StudySpec(methods="dm", per_class=10, seeds=range(3), transfer="mlp")
    assert (spec.methods, spec.per_class, spec.seeds) == (("dm",), (10,), (0, 1, 2))
    assert StudySpec(seeds=[1, 0, 1]).seeds == (1, 0)
    assert StudySpec(Path("a.csv")).data == "a.csv"


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"seed": [0]}, "Unknown option of the study 'seed': did you mean 'seeds'?"),
        ({"training": {"step": 3}}, "Unknown option of training 'step': did you mean 'steps'?"),
        ({"methods": ["dmm"]}, "did you mean 'dm'?"),
        ({"methods": ["ensemble"]}, "Unknown method 'ensemble'"),
        ({"options": {"herdng": {}}}, "Unknown method of this study 'herdng': did you mean 'herding'?"),
        ({"descent": {"herdin": {}}}, "did you mean 'herding'?"),
        ({"options": {"dm": {"bach": 3}}}, "Unknown option of dm 'bach': did you mean 'batch'?"),
        ({"options": {"dm": {"batch": 0}}}, "batch"),
        ({"sampler": "sghm"}, "did you mean 'sghmc'?"),
        ({"sampler": "sghmc", "sampler_options": {"thim": 2}}, "did you mean 'thin'?"),
        ({"network": "resnet11"}, "Unknown network 'resnet11'"),
        ({"transfer": ["mlp", "resnet11"]}, "Unknown network 'resnet11'"),
        ({"per_class": 0}, "per_class.0"),
        ({"per_class": []}, "per_class"),
        ({"fraction": 0}, "fraction.0"),
        ({"per_class": 3, "fraction": 0.1}, "either as per_class or as fraction"),
        ({"seeds": [-1]}, "seeds.0"),
        ({"seeds": "zero"}, "seeds.0"),
        ({"draws": 0}, "draws"),
        ({"evaluations": 0}, "evaluations"),
        ({"val": 1.0}, "val"),
        ({"test": float("nan")}, "test"),
        ({"methods": [], "baselines": False}, "There is nothing to compare"),
        ({"methods": ["../dm"], "variants": {"../dm": "dm"}}, "rename it"),
        ({"methods": [".dm"], "variants": {".dm": "dm"}}, "rename it"),
        ({"methods": ["full"], "variants": {"full": "dm"}}, "rename it"),
        ({"methods": ["full-converged"], "variants": {"full-converged": "dm"}}, "rename it"),
    ],
)
def test_what_is_wrong_is_one_sentence(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(AttarError) as caught:
        StudySpec.of(fields)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_text_of_flags_and_numbers_of_files_give_one_spec() -> None:
    typed = {"sampler": "sghmc", "sampler_options": {"thin": 2}, "options": {"dm": {"batch": 3}}, "draws": 4}
    text = {"sampler": "sghmc", "sampler_options": {"thin": "2"}, "options": {"dm": {"batch": "3"}}, "draws": "4"}
    one, other = ({**fields, "descent": {"dm": {"lr": lr}}} for fields, lr in ((typed, 1), (text, "1.0")))
    assert StudySpec.of(one) == StudySpec.of(other)


def test_the_example_of_the_documentation_is_a_spec(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "studies.md").read_text("utf-8")
    (example,) = re.findall(r"^```toml\n(.*?)^```", page, flags=re.DOTALL | re.MULTILINE)
    spec = StudySpec.read(written(example, tmp_path))
    assert spec.data == "fashion-mnist"
    assert [spec.method(name) for name in spec.names] == ["uniform", "herding", "dm", "bpc-cd", "bpc-cd"]


def test_a_file_that_is_not_there_or_no_toml_is_refused(tmp_path: Path) -> None:
    with pytest.raises(AttarError, match=r"There is no file .*nowhere.toml: check the path"):
        StudySpec.of(tmp_path / "nowhere.toml")
    with pytest.raises(AttarError, match="is not TOML"):
        StudySpec.read(written("methods = [", tmp_path))
    with pytest.raises(AttarError, match=r"option of recipe .*'method': did you mean 'methods'"):
        StudySpec.read(written('method = "dm"', tmp_path))


def test_options_of_a_method_that_is_left_out_are_kept_for_later() -> None:
    spec = StudySpec(methods=["dm", "dc"], options={"dc": {"batch": 3}})
    assert spec.changed({"methods": ["dm"]}).options == {"dc": {"batch": 3}}


def test_steps_are_set_for_methods_that_learn() -> None:
    spec = StudySpec(
        methods=["dm", "short", "craig"], variants={"short": "bpc-cd"}, descent={"dm": {"lr": 2.0, "steps": 5}}
    )
    assert spec.stepped(3).descent == {"dm": {"lr": 2.0, "steps": 3}, "short": {"steps": 3}}
    assert spec.descent["dm"]["steps"] == 5


def test_data_comes_from_files_with_the_spec_s_column_and_shares(tmp_path: Path) -> None:
    rows = [f"{k % 9},{k % 7},{'xy'[k % 2]}\n" for k in range(40)]
    (tmp_path / "train.csv").write_text("a,b,kind\n" + "".join(rows))
    (tmp_path / "test.csv").write_text("a,b,kind\n" + "".join(rows[:10]))
    spec = StudySpec(tmp_path / "train.csv", tmp_path / "test.csv", target="kind", val=0.5, scaling="none")
    split = spec.load_data()
    assert [len(part) for part in (split.train, split.val, split.test)] == [20, 20, 10]
    assert split.spec.transform.kind == "none"
    data = gaussians()
    own = Split(data, data, data)
    assert spec.load_data(own) is own
