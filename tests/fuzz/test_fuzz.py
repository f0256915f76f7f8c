"""Every input that ever failed, and a minute of new ones: each is read or refused in one sentence.

The seed is recorded here, so that a change is judged by the same inputs every time; ``ATTAR_FUZZ_SEED`` is another one,
and ``make fuzz`` draws its own. A failure says how to repeat its case.
"""

import mmap
import os
from pathlib import Path
from random import Random

import pytest

from tests.fuzz import guard, mutate
from tests.fuzz.guard import BAD, READ, REFUSED, TARGETS, Case, Outcome, mutated, run, samples, until
from tests.fuzz.pages import require_no_formula, require_sound
from tests.fuzz.target import ANY, Target

CORPUS = Path(__file__).with_name("corpus")
SEED = int(os.environ.get("ATTAR_FUZZ_SEED", "2026"))
SECONDS = float(os.environ.get("ATTAR_FUZZ_SECONDS", "60"))


def bad(outcomes: list[Outcome]) -> list[str]:
    return [f"{one.number} of {one.target}: {one.said}" for one in outcomes if one.verdict == BAD]


def test_valid_files_are_read() -> None:
    """Otherwise nothing but refusals would be tested."""
    whole = []
    for name, target in TARGETS.items():
        file = min(path for pattern in target.files for path in (samples() / name).glob(pattern))
        whole.append(Case(name, file.relative_to(samples() / name).as_posix(), file.read_bytes()))
    outcomes = list(run(enumerate(whole)))
    assert [(one.target, one.said) for one in outcomes if one.verdict != READ] == []
    assert len(outcomes) == len(TARGETS)


def test_inputs_that_once_failed_are_handled() -> None:
    """Files are in a folder of their target, named by what is wrong and the file that they replace."""
    paths = sorted(path for path in CORPUS.glob("*/*") if path.is_file())
    cases = [Case(path.parent.name, path.name.partition("@")[2].replace("+", "/"), path.read_bytes()) for path in paths]
    outcomes = list(run(enumerate(cases)))
    assert [(paths[one.number].name, one.said) for one in outcomes if one.verdict == BAD] == []
    assert len(outcomes) == len(paths) > 30


def test_fresh_mutations_are_read_or_refused() -> None:
    outcomes = list(run(until(SECONDS, SEED)))
    found = bad(outcomes)
    assert not found, f"repeat with `python -m tests.fuzz --seed {SEED} --case N`:\n" + "\n".join(found)
    assert {one.verdict for one in outcomes} == {READ, REFUSED}


def test_the_same_seed_gives_the_same_cases() -> None:
    assert [mutated(3, number) for number in range(60)] == [mutated(3, number) for number in range(60)]
    assert mutated(3, 0) != mutated(4, 0)


def crash(folder: Path) -> None:
    os.abort()


def opens(folder: Path) -> None:
    (folder / ".." / ".." / mutate.CANARY).read_text()


def starts(folder: Path) -> None:
    os.system("true")


def grows(folder: Path) -> int:
    size = guard.BUDGET + guard.SLACK + 10**8
    with mmap.mmap(-1, size) as fresh:  # the heap might have as much from before
        for page in range(0, size, mmap.PAGESIZE):
            fresh[page] = 1
    return size


def fails(folder: Path) -> None:
    raise RuntimeError("nobody thought of this")


def spins(folder: Path) -> None:
    while True:
        pass


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (crash, "ended with signal 6"),
        (opens, "open '"),
        (starts, "os.system"),
        (grows, "took "),
        (fails, "RuntimeError"),
        (spins, "hung"),
    ],
)
def test_the_guard_sees_every_kind_of_harm(harm: object, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if harm is spins:  # the others may take their time
        monkeypatch.setattr(guard, "CPU", 0.5)
    monkeypatch.setitem(guard.TARGETS, "csv", Target(TARGETS["csv"].make, harm, ["a.csv"], ANY))  # type: ignore[arg-type]
    case = Case("csv", "a.csv", b"")
    first, second = run([(0, case), (1, Case("tsv", "a.tsv", b""))])
    assert first.verdict == BAD
    assert said in first.said
    assert second.verdict == REFUSED  # the run goes on


def test_checksums_of_mutated_tensors_are_right() -> None:
    """So that mutations get past them, to the readers behind."""
    whole = (samples() / "coreset" / "a.safetensors").read_bytes()
    cases = [Case("coreset", "a.safetensors", mutate.tensors(whole, Random(number))) for number in range(60)]
    said = [one.said for one in run(enumerate(cases))]
    assert sum("after it was written" in reason for reason in said) < len(said) / 3


def test_foreign_markup_and_formulas_are_recognised() -> None:
    require_sound("<p>&lt;script&gt;</p><svg><title>a</title></svg>")
    for page in ("<img src=x onerror=a>", "<a href='http://x'>", "<p>\x1b</p>", "<p>\u202e</p>", "<iframe></iframe>"):
        with pytest.raises(AssertionError):
            require_sound(page)
    require_no_formula("a,-1.5,'=1\n")
    with pytest.raises(AssertionError):
        require_no_formula("a,=1+1\n")
