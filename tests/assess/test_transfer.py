"""One coreset under many networks; what does not fit is reported, what does not exist is refused."""

from dataclasses import replace

import pytest

import attar
from attar import Split, Training
from attar.assess.transfer import sizes, transfer
from attar.core.errors import AttarError
from attar.nets import network
from tests.known import gaussians, images

QUICK = Training(steps=15)


def split() -> Split:
    data = images(12)
    return Split(data[:18], data[:0], data[18:])


CORESET = attar.reduce(split(), "uniform", per_class=2, network="mlp-d1w8", training=QUICK)


def test_every_network_gets_a_row_with_the_scores_of_its_own_posteriors() -> None:
    names = ["mlp-d1w8", "CN-D1W4"]
    rows = transfer(CORESET, split(), names, seeds=[0, 1], draws=2)
    assert [row.network for row in rows] == names
    for row, name in zip(rows, names, strict=True):
        scores = [attar.evaluate(attar.infer(CORESET, draws=2, seed=s, network=name), split().test) for s in (0, 1)]
        first, second = (s.accuracy for s in scores)
        assert row.accuracy == pytest.approx((first + second) / 2)
        assert row.error == pytest.approx(abs(first - second) / 2)  # of two values
        assert row.nll == pytest.approx((scores[0].nll + scores[1].nll) / 2)
        assert row.parameters == network(name, (1, 8, 8), 3).size
        assert row.cost is not None
        assert row.cost.wall > 0
        assert row.problem is None
        assert row.seeds == 2
        spread = f"{row.accuracy:.3f} ± {row.error:.3f}, 2 seeds"
        assert str(row) == f"{name} ({row.parameters:,} parameters): accuracy {spread}"


def test_a_network_that_cannot_take_the_shape_is_reported_with_its_sentence() -> None:
    small, fits = transfer(CORESET, split(), ["resnet10", "linear"], seeds=[0])
    assert (small.accuracy, small.parameters, small.cost) == (None, None, None)
    assert small.problem == "resnet needs images of at least 9x9, got 8x8: use convnet for images from 2x2, or mlp."
    assert str(small) == f"resnet10: {small.problem}"
    assert fits.accuracy is not None
    assert (small.seeds, fits.seeds) == (0, 1)
    assert str(fits).endswith(f"accuracy {fits.accuracy:.3f}, one seed")  # so its spread is unknown


def test_a_network_whose_training_diverges_is_reported_too() -> None:
    (row,) = transfer(CORESET, split(), ["mlp-d1w8"], seeds=[0], training=replace(QUICK, lr=1e30))
    assert row.problem is not None
    assert "try a smaller learning rate" in row.problem
    assert row.accuracy is None
    assert row.parameters


def test_the_budget_is_the_coreset_s_unless_one_is_given() -> None:
    untrained = replace(QUICK, steps=1, lr=1e-12)
    (own,), (given,) = (transfer(CORESET, split(), ["linear"], seeds=[0], training=t) for t in (None, untrained))
    assert own.nll is not None
    assert given.nll is not None
    assert own.nll < given.nll


def test_names_of_sizes_run_from_small_to_large_and_can_be_built() -> None:
    names = sizes([2, 1], [16, 8])
    assert names == ["CN-D1W8", "CN-D1W16", "CN-D2W8", "CN-D2W16"]
    assert [network(name, (1, 8, 8), 3).name for name in names] == [
        "convnet-d1w8",
        "convnet-d1w16",
        "convnet-d2w8",
        "convnet-d2w16",
    ]
    assert sizes([], [8]) == []


def test_bad_input_is_refused_before_anything_runs() -> None:
    with pytest.raises(AttarError, match="Unknown network 'resnet11': did you mean"):
        transfer(CORESET, split(), ["linear", "resnet11"], seeds=[0])
    with pytest.raises(AttarError, match="ensemble takes no option 'step'"):
        transfer(CORESET, split(), ["linear"], seeds=[0], options={"step": 1})
    with pytest.raises(AttarError, match="at least one seed"):
        transfer(CORESET, split(), ["linear"], seeds=[])
    other = gaussians(4)
    with pytest.raises(AttarError, match="evaluate it on the data that it was made from"):
        transfer(CORESET, Split(other, other, other), ["linear"], seeds=[0])
    with pytest.raises(AttarError, match="Unknown option of convnet"):
        sizes([0], [16])
