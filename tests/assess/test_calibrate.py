"""Temperature scaling finds the temperature that was hidden, and never makes validation worse."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

import attar
from attar import Training
from attar.assess.calibrate import Tempered, calibrate, temper, temperature
from attar.assess.metrics import nll, score
from attar.core.errors import AttarError
from attar.data import Data
from attar.infer import Draws, Posterior
from attar.nets import network
from tests.known import digits, gaussians, generator, images


def honest(n: int, classes: int = 5, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Predictions, and labels drawn from them: their best temperature is 1."""
    gen = generator(seed)
    p = (2 * torch.randn(n, classes, generator=gen).double()).softmax(1)
    return p, torch.multinomial(p, 1, generator=gen).flatten()


@pytest.mark.parametrize("hidden", [0.2, 0.5, 1.0, 2.0, 5.0])
def test_it_recovers_a_known_temperature(hidden: float) -> None:
    p, y = honest(40_000)
    assert temperature(temper(p, hidden), y) == pytest.approx(1 / hidden, rel=0.03)


def test_it_is_exactly_the_minimum() -> None:
    p, y = honest(300, seed=3)
    best = temperature(temper(p, 0.3), y)
    at = {factor: nll(temper(temper(p, 0.3), best * factor), y) for factor in (0.99, 1, 1.01)}
    assert at[1] < at[0.99]
    assert at[1] < at[1.01]
    # and scaling the predictions first scales the answer, to the last digits
    assert temperature(p, y) == pytest.approx(0.3 * best, rel=1e-10)


def test_a_case_worked_by_hand() -> None:
    # Three of four are right at odds 9:1: the best odds are 3:1, so 9^(1/T) = 3 and T = 2.
    p = torch.tensor([[0.9, 0.1]] * 3 + [[0.1, 0.9]], dtype=torch.float64)
    y = torch.tensor([0, 0, 0, 0])
    p, y = torch.cat([p, p.flip(1)]), torch.cat([y, 1 - y])
    assert temperature(p, y) == pytest.approx(2, rel=1e-12)
    assert temper(p, 2)[0].tolist() == pytest.approx([0.75, 0.25])


def test_tempering_by_one_changes_nothing_and_twice_multiplies() -> None:
    p, _ = honest(50)
    torch.testing.assert_close(temper(p, 1), p)
    torch.testing.assert_close(temper(temper(p, 2), 3), temper(p, 6))


@pytest.mark.parametrize("t", [0.01, 0.3, 7, 100])
def test_the_likeliest_class_stays_also_among_ties_and_zeros(t: float) -> None:
    p, _ = honest(2000, 10)
    tied = torch.tensor([[0.4, 0.4, 0.2], [0.0, 0.5, 0.5], [0.0, 0.0, 1.0]])
    assert torch.equal(temper(p, t).argmax(1), p.argmax(1))
    assert temper(tied, t).argmax(1).tolist() == [0, 1, 2]
    torch.testing.assert_close(temper(tied, t).sum(1), torch.ones(3).double())


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("sharpness", [0.05, 1, 30])
def test_validation_nll_never_rises_and_accuracy_never_falls(seed: int, sharpness: float) -> None:
    p, y = honest(30, 4, seed)
    p = temper(p, 1 / sharpness)
    before, after = score(p, y), score(temper(p, temperature(p, y)), y)
    assert after.nll <= before.nll
    assert after.accuracy == before.accuracy


def test_sure_and_wrong_with_probability_zero_is_softened() -> None:
    p, y = torch.eye(2)[[0, 1, 0, 1, 0]].double(), torch.tensor([0, 1, 0, 1, 1])
    t = temperature(p, y)
    # Four of five right: odds of 4:1 fit best.
    assert temper(p, t)[0, 0].item() == pytest.approx(0.8)


def test_where_no_temperature_is_best_it_says_so() -> None:
    p = torch.tensor([[0.9, 0.1], [0.2, 0.8]])
    with pytest.warns(UserWarning, match="are all right.* left at 1; calibrate on more data"):
        assert temperature(p, torch.tensor([0, 1])) == 1
    with pytest.warns(UserWarning, match="no better than a guess"):
        assert temperature(p, torch.tensor([1, 0])) == 100


def trained(data: Data, steps: int = 30) -> Draws:
    return attar.infer(data, draws=2, network="mlp-d1w32", training=Training(steps=steps))


def test_a_tempered_posterior_is_a_posterior() -> None:
    few = digits().train.sample_per_class(3, generator())
    plain = trained(few)
    calibrated: Posterior = calibrate(plain, digits().val)
    before, after = attar.evaluate(plain, digits().val), attar.evaluate(calibrated, digits().val)
    assert after.nll < before.nll
    assert attar.evaluate(calibrated, digits().test).accuracy == attar.evaluate(plain, digits().test).accuracy
    assert torch.equal(calibrated.sample(3, generator()), plain.sample(3, generator()))
    assert (calibrated.network, calibrated.spec) == (plain.network, plain.spec)
    p = calibrated.predict(digits().test.x[:7])
    assert p.shape == (7, 10)
    assert p.dtype == torch.float64


def test_validation_data_under_another_scaling_is_brought_to_the_posterior_s() -> None:
    data = images(8)
    plain = trained(data, 2)
    noisy = replace(data, y=torch.where(torch.arange(len(data)) < 4, data.y.roll(1), data.y))
    other = noisy.transformed(digits().spec.transform)
    assert not torch.allclose(other.x, noisy.x, atol=0.1)
    assert calibrate(plain, other).temperature == pytest.approx(calibrate(plain, noisy).temperature, rel=1e-3)


def test_bad_input_is_refused() -> None:
    p, y = honest(10)
    with pytest.raises(AttarError, match="at least two classes"):
        temperature(p, torch.zeros(10).long())
    with pytest.raises(AttarError, match="sum to one"):
        temperature(2 * p, y)
    with pytest.raises(AttarError, match="Scores need"):
        temperature(p, y[:5])
    net = network("linear", (6,), 3)
    posterior = Draws(net, net.init(generator())[None], gaussians().spec)
    with pytest.raises(AttarError, match="has 3 classes, the validation data 4"):
        calibrate(posterior, gaussians(classes=4))
    for bad in (0.0, -1.0, float("inf"), float("nan")):
        with pytest.raises(AttarError, match="positive and finite"):
            Tempered(posterior, bad)
