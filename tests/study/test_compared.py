"""Comparisons within a study: differences by seed in words, and sizes that keep the accuracy."""

import pytest
import torch

from attar.assess.metrics import score
from attar.core.cost import Cost
from attar.core.errors import AttarError
from attar.study import Run, Study
from attar.study.compared import differences, distillation_size, distillation_sizes, paired


def run(method: str, per_class: int | None, seed: int, right: int) -> Run:
    """A run with so many of ten test examples right; it is perfect on validation, which must not matter."""
    test, validation = (score(torch.eye(2)[[1] * k + [0] * (10 - k)], torch.ones(10).long()) for k in (right, 10))
    return Run(method, "select", per_class, seed, 10, validation, test, Cost(), Cost())


STUDY = Study(
    "attar compare",
    {},
    {},
    [
        *(run("herding", size, 0, right) for size, right in ((1, 4), (50, 9), (10, 8), (20, 7))),
        *(run("herding", size, 1, right) for size, right in ((1, 2), (50, 9), (10, 8), (20, 7))),
        run("dm", 1, 0, 5),
        run("full", None, 0, 10),
        run("full", None, 1, 10),
    ],
)


@pytest.mark.parametrize(("percent", "size"), [(20, 1), (30, 1), (31, 10), (80, 10), (81, 50), (90, 50), (91, None)])
def test_the_smallest_size_that_was_run_and_reaches_the_share(percent: float, size: int | None) -> None:
    assert distillation_size(STUDY, "herding", percent) == size


def test_sizes_of_a_study_that_lacks_what_is_needed() -> None:
    assert distillation_size(STUDY, "dm") is None
    with pytest.raises(AttarError, match="method of this study 'herdin': did you mean 'herding'"):
        distillation_size(STUDY, "herdin")
    with pytest.raises(AttarError, match="no run on the full data"):
        distillation_size(Study("", {}, {}, STUDY.runs[:3]), "herding")
    with pytest.raises(AttarError, match="percent must be positive"):
        distillation_size(STUDY, "herding", 0)


def test_the_distillation_sizes_of_all_methods_are_one_sentence() -> None:
    said = distillation_sizes(STUDY, 80)
    assert said.startswith("80 % distillation size")
    assert said.endswith(": herding 10 per class; not reached by dm")
    assert distillation_sizes(Study("", {}, {}, STUDY.runs[:3])) == ""


def of(method: str, *right: int, per_class: int | None = 1) -> list[Run]:
    return [run(method, per_class, seed, k) for seed, k in enumerate(right)]


def test_rows_are_compared_seed_by_seed_over_the_seeds_that_both_have() -> None:
    gap = paired(of("dm", 9, 8, 7), of("uniform", 5, 6)[::-1])
    assert gap is not None
    assert (gap.difference, gap.seeds) == (pytest.approx(30), 2)  # 40 and 20 points
    assert paired(of("dm", 9)[:1], [run("uniform", 1, 7, 5)]) is None


def test_evaluations_of_one_coreset_count_once() -> None:
    gap = paired([*of("dm", 9), *of("dm", 7)], of("uniform", 5))
    assert gap == (pytest.approx(30), None, 1)


def test_every_method_is_compared_with_a_random_subset_in_words() -> None:
    uniform, full = of("uniform", 5, 6, 5, 6, 5), of("full", 10, 10, 10, 10, 10, per_class=None)
    dm, twin = of("dm", 8, 9, 8, 9, 8), of("twin", 5, 6, 5, 6, 5)
    assert differences(Study("", {}, {}, [*uniform, *dm, *twin, *full])) == [
        "dm, 1 per class, against uniform: above, by 30.0 ± 0.0 points",
        "twin, 1 per class, against uniform: not distinguishable (difference +0.0 ± 0.0 points)",
    ]
    (few,) = differences(Study("", {}, {}, [*uniform[:4], *dm[:4], *twin[:4]]))
    assert few.startswith("too few seeds")
    assert differences(Study("", {}, {}, dm)) == []
