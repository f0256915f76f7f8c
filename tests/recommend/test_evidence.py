"""The evidence that the package ships is what the committed studies give, and its regret is what is published."""

from dataclasses import replace

from attar.core import registry
from attar.core.files import read_json
from attar.core.method import Descent
from attar.recommend.evidence import evidence
from attar.study import Study
from benchmarks import RESULTS, recommend


def test_the_evidence_is_what_the_committed_studies_give() -> None:
    studies = [Study.load(path) for path in recommend.studies()]
    assert [study.data["name"] for study in studies] == list(recommend.SPECS)
    assert recommend.evidence(studies) == evidence()


def test_every_study_ran_with_the_settings_that_are_recommended() -> None:
    for path, spec in zip(recommend.studies(), recommend.SPECS.values(), strict=True):
        study = Study.load(path)
        assert {run.seed for run in study.runs} == set(spec.seeds)
        assert {run.method for run in study.runs} == {*spec.names, "full"}
        for name in {run.method for run in study.runs} - {"full"}:
            own = evidence().settings[name]
            assert study.config["options"].get(name, {}) == own.options
            assert study.config["descent"].get(name, {}) == own.descent
            assert study.config["variants"].get(name, name) == own.method


def test_the_settings_are_settings_of_their_methods() -> None:
    for own in evidence().settings.values():
        registry.build(own.method, own.options, *registry.REDUCERS)
        registry.make(Descent, own.descent, own.method)


def test_the_published_regret_follows_and_is_lower_than_that_of_always_dm() -> None:
    published = read_json(RESULTS / recommend.NAME / "regret.json")
    assert published == recommend.regrets(evidence())
    assert published["accuracy"]["mean"]["recommend"] < published["accuracy"]["mean"]["dm"]


def test_the_data_set_that_is_left_out_has_no_say() -> None:
    known = evidence()
    row = recommend.regrets(known)["accuracy"]["rows"][0]
    turned = [
        replace(each, scores=dict(zip(each.scores, reversed(each.scores.values()), strict=True)))
        if each.data == row["data"]
        else each
        for each in known.problems
    ]
    again = recommend.regrets(replace(known, problems=turned))["accuracy"]["rows"][0]
    assert again["chosen"] == row["chosen"]
    assert again["best"] != row["best"]
