from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from statistics import mean
from typing import Any

import pytest

from attar.assess.corruption import CORRUPTIONS
from attar.assess.privacy import Membership
from attar.assess.questions import Assessment
from attar.assess.transfer import Transferred
from attar.report import render, write
from attar.report.mixing import mixing
from attar.report.stress import transfer_matrix
from attar.study.results import Study
from tests.report.assessments import NETWORKS, plain, whole
from tests.report.reading import EVIL, scripts, section, text
from tests.report.studies import study

HEADINGS = (
    "Calibration",
    "Selective prediction",
    "Out-of-distribution detection",
    "Distance to the full data",
    "Corrupted inputs",
    "Adversarial attacks",
    "Transfer to other networks",
    "Gain from the examples themselves",
    "Privacy",
    "Convergence of the chains",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("study")


@pytest.fixture(scope="module")
def small(folder: Path) -> Study:
    return study(folder)


@pytest.fixture(scope="module")
def asked() -> Assessment:
    return whole("dm")


@pytest.fixture(scope="module")
def page(small: Study, folder: Path, asked: Assessment) -> str:
    return render(small, folder, [asked])


def block(page: str, heading: str, look: str = "look-1") -> str:
    """One answer of a section."""
    return section(page, look).partition(f"<h3>{heading}</h3>")[2].partition('class="answer"')[0]


def again(small: Study, folder: Path, changed: Assessment) -> str:
    return render(small, folder, [changed])


def test_every_question_has_its_answer_and_the_section_a_link(page: str) -> None:
    assert tuple(re.findall(r"<h3>(.*?)</h3>", section(page, "look-1")))[:-1] == HEADINGS
    assert '<a href="#look-1">Detailed evaluation of dm</a>' in page


def test_what_was_not_asked_is_not_there(small: Study, folder: Path) -> None:
    page = render(small, folder, [plain()])
    assert re.findall(r"<h3>(.*?)</h3>", section(page, "look-1"))[:-1] == list(HEADINGS[:2])
    assert "Detailed evaluation" not in render(small, folder)


def test_calibration_says_what_temperature_scaling_did(page: str, asked: Assessment) -> None:
    assert asked.calibrated
    before, after, read = asked.scores, asked.calibrated, text(block(page, "Calibration"))
    assert after.ece < before.ece
    assert f"the calibration error on test is {before.ece:.3f} before and {after.ece:.3f} after" in read
    assert "softens its probabilities (T = 2.00" in read
    for state, found in (("before", before), ("after", after)):
        recalls = " ".join(f"{100 * share:.1f}" for share in (found.accuracy, found.balanced, found.worst))
        assert f"{state} {recalls} {found.nll:.3f}" in read
    assert block(page, "Calibration").count("<svg") == 2


def test_a_temperature_that_makes_things_worse_is_said_too(small: Study, folder: Path, asked: Assessment) -> None:
    assert asked.calibrated
    worse = replace(asked, scores=asked.calibrated, calibrated=asked.scores, temperature=0.5)
    read = text(block(again(small, folder, worse), "Calibration"))
    assert "sharpens" in read
    assert f"{worse.scores.ece:.3f} before and {asked.scores.ece:.3f} after" in read


def test_the_surest_half_is_told_beside_all(page: str, asked: Assessment) -> None:
    share, accuracy = min(asked.selective, key=lambda point: abs(point[0] - 0.5))
    read = text(block(page, "Selective prediction"))
    assert f"on all examples it is {100 * asked.scores.accuracy:.1f} %" in read
    assert f"most confident {100 * share:.0f} % it is {100 * accuracy:.1f} %" in read


def test_strange_data_and_distances_are_written(page: str, asked: Assessment) -> None:
    assert asked.distance
    for name, auroc in asked.detection.items():
        assert f"{name} {auroc:.3f}" in text(block(page, "Out-of-distribution detection"))
    read = text(block(page, "Distance to the full data"))
    assert f"Accuracy kept {asked.ratio:.1f} %" in read
    assert f"Agreement {100 * asked.distance.agreement:.1f} %" in read
    assert f"Total variation {asked.distance.total_variation:.3f}" in read
    assert f"Symmetric KL {asked.distance.symmetric_kl:.3f} nats" in read
    assert asked.floor
    assert f"Full data against full data: {asked.floor.total_variation:.3f}." in read
    assert f"Full data against full data: {asked.floor.symmetric_kl:.3f} nats." in read


def test_corruption_has_a_cell_for_each_severity_and_means_on_both_sides(page: str, asked: Assessment) -> None:
    found = block(page, "Corrupted inputs")
    assert len(re.findall(r'class="heat"', found)) == 5 * (len(CORRUPTIONS) + 1)
    fog = [one for one in asked.corruption if one.name == "fog"]
    cells = " ".join(f"{100 * one.accuracy:.0f}" for one in fog)
    beside = f"{100 * mean(one.accuracy for one in fog):.1f} {mean(one.nll for one in fog):.2f}"
    assert f"fog {cells} {beside}" in re.sub(r" fog, severity \d: [\d.]+ %", "", text(found))
    assert "on 1,000 test examples that were corrupted" in text(found)
    assert f"over all corruptions it is {100 * mean(one.accuracy for one in asked.corruption):.1f} %" in text(found)


def test_a_severity_that_was_left_out_is_a_dash(small: Study, folder: Path, asked: Assessment) -> None:
    gappy = replace(asked, corruption=asked.corruption[1:])
    found = block(again(small, folder, gappy), "Corrupted inputs")
    assert len(re.findall(r'class="heat"', found)) == 5 * (len(CORRUPTIONS) + 1) - 1
    assert ">–</text>" in found


def test_attacks_are_written_in_steps_of_a_pixel(page: str) -> None:
    read = text(block(page, "Adversarial attacks"))
    assert "apgd-ce 8/255 84.7 31.2 100 × 1 1,000" in read
    assert "autoattack 8/255 84.7 18.7 its own 1,000" in read
    assert "standard 8/255 84.7 18.6 100 × 1, then AutoAttack’s own 1,000" in read
    assert "pgd 0.5/255 84.7 80.1 40 × 5 1,000" in read


def test_transfer_has_all_networks_and_says_why_one_is_missing(page: str, asked: Assessment) -> None:
    read = text(block(page, "Transfer to other networks"))
    first = asked.transfer[0]
    assert (
        f"convnet 320,010 3 {100 * (first.accuracy or 0):.1f} ± 5.2 – – {first.nll:.3f} 31.2" in read
    )  # of a file from before
    assert "alexnet needs pictures of at least 32 × 32 pixels, got 8 × 8." in read
    assert block(page, "Transfer to other networks").count('class="mark') == len(NETWORKS)


def test_networks_that_all_failed_leave_no_chart_and_one_seed_no_error(
    small: Study, folder: Path, asked: Assessment
) -> None:
    failed = replace(asked, transfer=[Transferred("mlp", problem="The training diverged.")])
    found = block(again(small, folder, failed), "Transfer to other networks")
    assert "<svg" not in found
    assert "mlp: The training diverged." in found
    single = replace(asked, transfer=[Transferred("mlp", 10, 0.5, 0.0, 1.0, seeds=1)])
    assert "mlp 10 1 50.0 – – 1.000 –" in text(block(again(small, folder, single), "Transfer to other networks"))
    hot: dict[str, float | None] = {"temperature": 0.001, "rhat": 1.02}
    whole = replace(single.transfer[0], balanced=0.4, worst=0.25, majority=0.3, chains=hot)
    read = text(block(again(small, folder, replace(asked, transfer=[whole])), "Transfer to other networks"))
    for part in ("mlp 10 1 50.0 40.0 25.0 1.000 –", "frequent training class has 30.0", "T = 0.001, R-hat 1.02"):
        assert part in read


def test_several_coresets_make_a_transfer_matrix(small: Study, folder: Path, asked: Assessment, page: str) -> None:
    other = replace(whole("craig"), transfer=[Transferred("mlp", 10, 0.25, 0.0, 1.0), Transferred("vit", 10, 0.75)])
    found = section(render(small, folder, [asked, other, plain()]), "transfer")
    assert len(re.findall(r'class="heat"', found)) == len(NETWORKS) + 2
    assert text(found).index(" dm ") < text(found).index(" craig ")
    assert transfer_matrix([asked, plain()]) is None
    assert 'id="transfer"' not in page


def test_fairness_is_told_in_points_with_its_meaning(page: str, small: Study, folder: Path, asked: Assessment) -> None:
    assert asked.fairness
    read = text(block(page, "Gain from the examples themselves"))
    gain, error = asked.fairness.own.gain
    assert f"IOR {100 * gain:+.1f} ± {100 * error:.1f} points Improvement over random" in read
    assert f"HLR {100 * asked.fairness.hlr:+.1f} points Hard-label recovery" in read
    assert f"LRS {asked.fairness.lrs():.3f}" in read
    assert f"ARS {asked.fairness.ars():.3f}" in read
    bare = replace(asked, fairness=replace(asked.fairness, augmented=None))
    assert "ARS – " in text(block(again(small, folder, bare), HEADINGS[7]))


def test_privacy_draws_every_distance_and_counts_copies(small: Study, folder: Path, asked: Assessment) -> None:
    found = block(again(small, folder, replace(asked, nearest=[0.0, 0.0, 0.7, 1.5])), "Privacy")
    assert found.count('class="mark') == 4
    assert "Exact copies 2 of 4" in text(found)


@pytest.mark.parametrize(
    ("auroc", "says"), [(0.52, "cannot tell which examples were used"), (0.9, "reveals which examples were used")]
)
def test_membership_is_judged_by_luck(small: Study, folder: Path, asked: Assessment, auroc: float, says: str) -> None:
    found = again(small, folder, replace(asked, membership=Membership(auroc, 0.02, 100, 600)))
    read = text(block(found, "Privacy"))
    assert says in read
    assert "True-positive rate at 1 % FPR 2.0 %" in read


def test_chains_have_their_traces_and_the_verdict_in_words(page: str) -> None:
    found = block(page, "Convergence of the chains")
    assert found.count("<polyline") == 2 * 4
    for words in ("R-hat 1.04 Chains count as mixed", "Effective sample size 62 of 160", "Acceptance rate 81 %"):
        assert words in text(found)


def test_chains_that_did_not_mix_carry_the_warning(small: Study, folder: Path, asked: Assessment) -> None:
    notes = asked.diagnostics | {"rhat": 2.5, "warnings": ["The chains have not mixed: try more warmup."]}
    found = block(again(small, folder, replace(asked, diagnostics=notes)), "Convergence of the chains")
    assert '<p class="warning">The chains have not mixed: try more warmup.</p>' in found
    assert "Chains count as not shown to have mixed" in text(found)


@pytest.mark.parametrize(
    "notes",
    [
        {},
        {"sampler": "ensemble", "warnings": None},
        {"trace": None, "rhat": None, "ess": None, "acceptance": None, "warnings": []},
        {"trace": {"potential": []}},
        {"trace": {"potential": [[float("nan")]]}, "rhat": float("nan")},
    ],
)
def test_where_nothing_walked_nothing_is_said_about_chains(notes: dict[str, Any]) -> None:
    assert mixing(notes, "dm") is None


def test_a_start_from_experts_is_the_first_thing_read(small: Study, folder: Path, page: str) -> None:
    leaky = section(render(small, folder, [whole("dm", start="experts")]), "look-1")
    assert '<span class="label">started from full-data experts</span></h2>' in leaky
    assert text(leaky).index("leaks the full data") < text(leaky).index("Calibration")
    assert "leaks" not in page
    assert 'class="label"' not in page


def test_a_method_keeps_the_colour_of_its_row_and_a_stranger_takes_none_of_them(
    small: Study, folder: Path, asked: Assessment
) -> None:
    page = render(small, folder, [asked, plain("stranger")])
    (row,) = re.findall(r'<span class="swatch (\S+)" aria-hidden="true"></span>dm <span', section(page, "scores"))
    colours = [re.findall(r'class="swatch (\S+)"', section(page, f"look-{i}"))[0] for i in (1, 2)]
    assert colours[0] == row
    assert colours[1] not in set(re.findall(r'class="swatch (\S+)"', section(page, "scores")))


def test_text_in_an_assessment_is_escaped(small: Study, folder: Path, asked: Assessment) -> None:
    evil = replace(
        asked,
        name=EVIL,
        detection={EVIL: 0.5},
        corruption=[replace(asked.corruption[0], name=EVIL)],
        attacks=[replace(asked.attacks[0], name=EVIL)],
        transfer=[replace(asked.transfer[0], network=EVIL), Transferred(EVIL, problem=EVIL)],
        diagnostics=asked.diagnostics | {EVIL: EVIL, "sampler": EVIL, "warnings": [EVIL]},
    )
    page = render(small, folder, [evil, evil])
    assert page.count("<script") == len(scripts(page)) == 1  # its own


def test_a_saved_assessment_gives_the_same_page(small: Study, folder: Path, asked: Assessment, page: str) -> None:
    asked.save(folder / "dm.json")
    path = write(small, folder, folder / "asked.html", [Assessment.load(folder / "dm.json")])
    assert path.read_text(encoding="utf-8") == page
