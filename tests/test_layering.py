"""Imports point one way, tests stand where their code stands, and importing the library brings no heavy package."""

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from tests.known import ROOT, new_python

#: A module may import what stands before its own place; a lazy import inside a function may look up.
LEVELS = (
    {"core"},
    {"engine"},
    {"data"},
    {"nets"},
    {"truth"},
    {"recipe"},
    {"coreset", "experts"},
    {"infer"},
    {"select", "condense"},
    {"bayes"},
    {"plan"},
    {"reduce"},
    {"assess"},
    {"study"},
    {"board", "continual", "nas", "recommend"},
    {"report"},
    {"export", "classifier"},
    {"_public"},
    {"cli"},
)
LEVEL = {room: level for level, rooms in enumerate(LEVELS) for room in rooms}
SOURCE = ROOT / "src" / "attar"
PROBING = ("getattr", "hasattr")
FILES = [path for path in SOURCE.rglob("*.py") if path != SOURCE / "__init__.py"]


def room(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module == "attar":
            yield from (f"attar.{name.name}" for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def test_a_module_imports_only_what_stands_before_it() -> None:
    ours = [(path, name) for path in FILES for name in imported(ast.parse(path.read_text()).body) if "attar." in name]
    pairs = {(room(path), name.split(".")[1]) for path, name in ours}
    assert [(a, b) for a, b in pairs if a != b and LEVEL[b] >= LEVEL[a]] == []


def test_what_makes_a_coreset_knows_no_command_line_no_progress_bar_and_no_evaluator() -> None:
    banned = ("typer", "rich", "tqdm", "attar.cli", "attar.assess", "attar.study", "attar.report")
    below = [path for path in FILES if LEVEL[room(path)] < LEVEL["assess"]]
    everywhere = {(path, name) for path in below for name in imported(ast.walk(ast.parse(path.read_text())))}
    assert [(path, name) for path, name in everywhere if f"{name}.".startswith(tuple(f"{b}." for b in banned))] == []


#: The files in which a text may stand, for what has one place; each but the first does something else than the concept.
ONCE = {
    "autograd.grad(": {  # of a network's loss in its parameters
        "nets/objective.py",
        "nets/fast/engine.py",
        "assess/apgd.py",  # in inputs
        "bayes/fkl.py",  # in examples
        "condense/mnemonics.py",  # in examples
        "condense/unroll.py",  # of the end of a training
        "condense/wide.py",  # of a kernel
        "infer/curvature.py",  # of logits in the outputs of layers
    },
    "torch.randn(": {  # of a generator
        "data/noise.py",
        "assess/corruption/dice.py",  # one generator per image
        "condense/generator.py",  # these have generators of their own on the CPU
        "data/cooccurrence.py",
        "data/spec.py",
        "data/text.py",
        "report/principal.py",
        "nets/cosine.py",  # initial weights, as modules draw them
        "nets/neighbours.py",
    },
}


@pytest.mark.parametrize("text", ONCE)
def test_one_concept_has_one_place(text: str) -> None:
    found = {path.relative_to(SOURCE).as_posix() for path in FILES if text in path.read_text()}
    assert found <= ONCE[text]


def test_methods_are_asked_by_their_base_class() -> None:
    """No room of methods, or that runs them, asks an object whether it has an attribute of a certain name."""
    rooms = {
        "select",
        "condense",
        "bayes",
        "infer",
        "plan",
        "reduce",
        "study",
        "board",
        "continual",
        "nas",
        "recommend",
    }
    probing = set()
    for path in (path for path in FILES if room(path) in rooms):
        for node in ast.walk(ast.parse(path.read_text())):
            probe = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in PROBING
            if probe and isinstance(node.args[1], ast.Constant):
                probing.add(path.relative_to(SOURCE).as_posix())
    assert probing == set()


#: Test files of a room that are about several of its modules, or about one from outside.
TOPICS = {
    "assess": {"properties"},
    "condense": {"baselines"},
    "cli": {"program", "reduce", "rest", "select"},  # a whole command line each
    "core": {"files_killed", "files_unread"},
    "data": {"augment_draws", "properties"},
    "data/formats": {"arrays", "bombs", "properties"},
    "experts": {"faults"},
    "report": {"browser"},
    "faults": {"faults"},
    "fuzz": {"fuzz"},
    "select": {"memory", "order", "properties", "saturated"},
}
TESTS = ROOT / "tests"
HARNESS = {"faults", "fuzz"}  #: folders of tests of the whole


def test_every_room_has_a_folder_of_tests_and_every_folder_of_tests_a_room() -> None:
    rooms = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    assert {path.parent.name for path in TESTS.glob("*/test_*.py")} == rooms | HARNESS


def test_a_test_file_is_named_after_the_module_that_it_tests() -> None:
    files = [path.relative_to(TESTS) for path in TESTS.glob("*/**/test_*.py")]
    assert files
    astray = []
    for path in files:
        name = path.stem.removeprefix("test_")
        module = SOURCE / path.parent / name
        known = module.with_suffix(".py").is_file() or (module / "__init__.py").is_file()
        if not known and name not in TOPICS.get(path.parent.as_posix(), set()):
            astray.append(path.as_posix())
    assert astray == []


IMPORT = """
import sys, attar
print(*sorted({name.partition(".")[0] for name in sys.modules}))
"""
HEAVY = {"sklearn", "scipy", "matplotlib", "datasets", "pyarrow", "pandas", "kornia", "ray", "tensorboard", "rich"}


def test_importing_brings_no_heavy_package() -> None:
    out, err = new_python(IMPORT).communicate(timeout=300)
    assert not err
    assert not set(out.split()) & (HEAVY | {"typer"})
