"""The committed recipes can be carried out: the commands in their headers run, with a tiny budget."""

import re
import shlex
from pathlib import Path

import pytest

import attar
import benchmarks
from attar.cli import build, main
from attar.condense.contract import Descent
from attar.core import registry
from attar.nets import network
from attar.nets.train import Training
from attar.study import Study, StudySpec
from benchmarks import activations
from tests.known import ROOT

FOLDER = ROOT / "benchmarks" / "recipes"
RECIPES = sorted(
    [*FOLDER.glob("*.toml"), *(FOLDER / "meta_learning").glob("*.toml"), *(FOLDER / "papers").glob("*.toml")]
)
TINY = "digits --seeds 0 --steps 1 --network mlp-d1w8 --train-steps 1 --draws 1 --workers 1 --evaluations 1"
TINY += " --no-converged"
TEXTS = attar.load((["what is it", "who are you"] * 10, [0, 1] * 10)).spec


def of_recipes() -> pytest.MarkDecorator:
    return pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)


def commands(path: Path) -> list[list[str]]:
    """The command lines in the header of a recipe, as words."""
    header = re.findall(r"^#.*?\b(attar (?:experts|compare) .*)$", path.read_text("utf-8"), flags=re.MULTILINE)
    return [shlex.split(line)[1:] for line in header]


def tiny(words: list[str], spec: StudySpec) -> list[str]:
    """The same command on ten digits, a small network and a step of everything; the last of two flags counts."""
    if words[0] == "experts":
        fewer = ["--trajectories", "1"] if "--trajectories" in words else []  # else they are found by their number
        return ["experts", "digits", *words[2:], "--network", "mlp-d1w8", "--workers", "1", *fewer]
    located = [str(ROOT / word) if word.startswith("benchmarks/") else word for word in words[1:]]
    batches = max(int(own.get("batches") or 1) for own in [{}, *spec.options.values()])
    size = ["-n", str(-(-batches // 10))]  # at least one example in every batch
    other = [*(["--transfer", "linear"] if spec.transfer else []), *(["--base", "digits"] if spec.base else [])]
    # One step at a paper's learning rate moves images too far for a chain over a network so small.
    other += ["--sampler", "ensemble"] if spec.protocol == "published" else []
    return ["compare", *located, *TINY.split(), *size, *other]


@of_recipes()
def test_the_commands_in_a_recipe_s_header_run(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ATTAR_EXPERTS", str(tmp_path / "found"))
    spec, lines = StudySpec.read(path), commands(path)
    assert [words[0] for words in lines][-1] == "compare"
    for words in lines:
        with pytest.raises(SystemExit) as end:
            main(tiny(words, spec))
        assert end.value.code == 0, capsys.readouterr().err
    folder = lines[-1][lines[-1].index("-o") + 1]
    study = Study.load(tmp_path / folder / "study.json")
    assert {run.method for run in study.runs} == {*spec.names, *(["full"] if spec.baselines else [])}
    assert study.config["options"] == {name: spec.options[name] for name in spec.names if name in spec.options}
    assert (tmp_path / folder / "transfer.json").exists() == bool(spec.transfer)


@of_recipes()
def test_the_network_and_the_optimiser_settings_of_a_recipe_exist(path: Path) -> None:
    spec = StudySpec.read(path)
    assert spec.network is not None
    shape = (3, 32, 32) if spec.data == "cifar10" else (1, 28, 28)
    network(spec.network, *((TEXTS,) if spec.data == "trec6" else (shape, 10)))
    assert spec.options.keys() | spec.descent.keys() | spec.variants.keys() <= set(spec.names)
    for name, descent in spec.descent.items():
        registry.make(Descent, descent, name)


def test_every_small_recipe_has_one_of_the_papers_size() -> None:
    stems = {path.stem for path in RECIPES}
    small = {stem.removesuffix("-small") for stem in stems if stem.endswith("-small")}
    assert small
    assert {f"{table}-paper" for table in small} <= stems


PAPERS = [path for path in RECIPES if path.stem.endswith("-paper")]
DESCENT = {"steps": 2000, "optimiser": "sgd", "momentum": 0.0, "schedule": "constant", "init": "real"}
#: By method, what its paper or, where that is silent, its public code has; the headers of the recipes name the source.
PUBLISHED: dict[str, tuple[dict[str, object], dict[str, object]]] = {
    "bpc-cd": ({"step_size": 0.01, "max_epoch": 50}, DESCENT),  # appendix A and Algorithm 1
    "bpc-fkl": ({"draws": 30, "sigma": 0.01, "net_steps": 30, "step_size": 0.03}, {"optimiser": "sgd", "lr": 1000}),
    "bpc-w": ({"net_steps": 30, "ahead": 1, "step_size": 0.03}, {"optimiser": "sgd", "lr": 1000}),
    "bpc-rkl": ({"batch": 1000, "net_steps": 30}, {"optimiser": "sgd", "lr": 1000}),
    "mtt": ({"net_steps": 20, "ahead": 3}, {"steps": 5000, "optimiser": "sgd", "lr": 1000, "momentum": 0.5}),
    "dm": ({}, {"steps": 20000, "lr": 1.0, "momentum": 0.5}),
    "dc": ({}, {"lr": 0.1, "momentum": 0.5}),
    "dsa": ({}, {"lr": 0.1, "momentum": 0.5}),
    "cafe": ({}, {"lr": 0.1, "momentum": 0.5}),
    "lcmat-c": ({"net_lr": 0.01}, {"lr": 0.005, "init": "noise"}),  # appendix D.1
}


@pytest.mark.parametrize("path", PAPERS, ids=lambda path: path.stem)
def test_a_paper_s_recipe_has_the_paper_s_values(path: Path) -> None:
    spec = StudySpec.read(path)
    assert (spec.protocol, spec.network) == ("published", "convnet-d3w128")
    assert spec.training == Training()  # the protocol's, not ours
    assert set(spec.per_class) <= {1, 10, 50}
    for name in spec.names:
        options, descent = PUBLISHED.get(spec.method(name), ({}, {}))
        assert {key: spec.options[name][key] for key in options} == options
        assert {key: spec.descent[name][key] for key in descent} == descent
    if experts := [words for words in commands(path) if words[0] == "experts"]:
        (words,) = experts
        assert [words[words.index(flag) + 1] for flag in ("--trajectories", "--epochs", "--momentum")] == [
            "100",
            "50",
            "0",
        ]


def test_table_6_changes_one_value_at_a_time() -> None:
    """The ablations of k have the paper's σ = 0.001, those of σ its k = 100."""
    options = StudySpec.read(FOLDER / "table6-paper.toml").options
    assert {name: (own["k"], own["sigma"]) for name, own in options.items()} == {
        "sigma-0.01": (100, 0.01),
        "sigma-0.001": (100, 0.001),
        "sigma-0.0001": (100, 0.0001),
        "k-10": (10, 0.001),
        "k-50": (50, 0.001),
        "k-100": (100, 0.001),
    }


APPLICATIONS = sorted((ROOT / "benchmarks" / "recipes" / "applications").glob("*.toml"))
FEWER = {
    "continual": "digits -n 1 --seeds 0 --steps 1 --network mlp-d1w8 --train-steps 1 --workers 1",
    "nas": "digits -n 1 --steps 1 --network mlp-d1w8 --train-steps 1 --full-steps 2 --workers 1 --depths 1 --widths 4",
}


@pytest.mark.parametrize("path", APPLICATIONS, ids=lambda path: path.stem)
def test_the_command_of_an_application_s_recipe_runs(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (line,) = re.findall(r"^# Run: *attar (.*)$", path.read_text("utf-8"), flags=re.MULTILINE)
    words = [str(ROOT / word) if word.startswith("benchmarks/") else word for word in shlex.split(line)]
    with pytest.raises(SystemExit) as end:
        main([*words, *FEWER[words[0]].split()])
    assert end.value.code == 0, capsys.readouterr().err
    assert (tmp_path / path.stem / f"{words[0]}.json").exists()


def test_the_study_of_activations_changes_one_thing_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(benchmarks, "WORK", tmp_path)
    few = {"activation": ("sigmoid",), "norm": ("none",), "pool": ("max",)}
    whole = [network for _, _, network in activations.networks("convnet-d3w32")]
    assert len(set(whole)) == 8  # the recipe's own network stands once for each axis
    monkeypatch.setattr(activations, "AXES", few)
    spec = benchmarks.recipe("activations").changed(
        {"data": "digits", "network": "convnet-d1w4", "seeds": 0, "draws": 1, "training": Training(steps=1)}
    )
    rows = activations.rows(spec.stepped(1), workers=1)
    assert [(row["network"], row["method"]) for row in rows] == [
        (f"convnet-d1w4-{choice}", method) for choice in ("sigmoid", "nonorm", "max") for method in ("uniform", "dc")
    ]


def test_the_commands_to_measure_on_a_gpu_are_understood_and_what_they_are_compared_with_is_there() -> None:
    text = (ROOT / "benchmarks" / "gpu.md").read_text("utf-8")
    lines = [shlex.split(line)[1:] for line in re.findall(r"^attar .*$", text, flags=re.MULTILINE)]
    assert len(lines) > 10
    for name, *words in lines:
        program = build([name, *words])
        with program.make_context("attar", [name], resilient_parsing=True) as context:
            command = program.get_command(context, name)
            assert command is not None, name
            with command.make_context(name, list(words), parent=context):
                pass  # a flag or value that it does not know is an error
        assert name in ("show", "evaluate") or "cuda" in words or "cpu" in words
        assert all((ROOT / word).exists() for word in words if word.startswith("benchmarks/"))
    committed = re.findall(r"`(results/[^`]+)`", text)
    assert len(committed) == 4
    assert [path for path in committed if not (ROOT / "benchmarks" / path).exists()] == []
