import json

import pytest

from attar.core.errors import AttarError, MissingExtra, require, unknown


def test_an_unknown_name_gets_the_nearest_known_one() -> None:
    assert str(unknown("method", "Herdin", ["dm", "herding"])) == "Unknown method 'Herdin': did you mean 'herding'?"


def test_a_name_like_no_other_gets_the_whole_list_in_order() -> None:
    assert str(unknown("method", "xyz", ["dm", "dc"])) == "Unknown method 'xyz': choose from dc, dm."


def test_a_package_that_is_there_is_imported() -> None:
    assert require("json", "any") is json


def test_a_package_that_is_not_there_names_its_extra() -> None:
    with pytest.raises(MissingExtra, match=r"package no_such_package: run pip install 'attar\[fancy\]'"):
        require("no_such_package.part", "fancy")


def test_errors_can_be_caught_as_what_they_are() -> None:
    assert issubclass(AttarError, ValueError)
    assert issubclass(MissingExtra, ImportError)


def test_only_near_names_are_suggested() -> None:
    said = str(unknown("data set", "iris", ["digits", "svhn"], "give a name or a path."))
    assert said == "Unknown data set 'iris': give a name or a path."
    assert "did you mean 'digits'?" in str(unknown("data set", "digit", ["digits", "svhn"], "give a name or a path."))
