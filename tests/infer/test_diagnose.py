import json
from math import log

import pytest
import torch
from torch import Tensor

from attar.infer.diagnose import Chains, MixingWarning, diagnose, ess, in_words, rhat
from attar.nets import Network, network
from tests.known import generator

NET = network("linear", (1,), 2)  # theta: weight (2, 1), then bias (2,)
X = torch.linspace(-1, 1, 200)[:, None]


def noise(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=generator(seed), dtype=torch.float64)


def autoregressive(phi: float, chains: int, kept: int) -> Tensor:
    """Chains of variance one whose draws have correlation phi with the one before."""
    shocks, x = noise(kept, chains), [noise(chains, seed=1)]
    for shock in shocks:
        x.append(phi * x[-1] + (1 - phi**2) ** 0.5 * shock)
    return torch.stack(x[1:], 1)


def test_independent_draws_count_in_full() -> None:
    series = noise(4, 1000, 32)
    assert rhat(series).max().item() < 1.01
    assert ess(series).mean().item() == pytest.approx(4000, rel=0.05)
    assert ess(series).min().item() > 3000


@pytest.mark.parametrize("phi", [0.5, 0.9, -0.4])
def test_an_autoregression_counts_by_its_known_share(phi: float) -> None:
    series = autoregressive(phi, 8, 5000)
    share = (1 - phi) / (1 + phi)
    assert ess(series).item() == pytest.approx(8 * 5000 * share, rel=0.15)
    assert rhat(series).item() < 1.02


def test_one_chain_has_an_effective_size_too() -> None:
    assert ess(autoregressive(0.5, 1, 20_000)).item() == pytest.approx(20_000 / 3, rel=0.15)


def by_definition(series: Tensor) -> float:
    """The effective size of ``(chains, kept)``, written down without a transform."""
    half = series.shape[1] // 2
    rows = [row for chain in series for row in (chain[:half], chain[-half:])]
    within = sum(row.var().item() for row in rows) / len(rows)
    total = (half - 1) / half * within + torch.stack([row.mean() for row in rows]).var().item()

    def rho(lag: int) -> float:
        centred = [row - row.mean() for row in rows]
        covariance = sum((c[: half - lag] @ c[lag:]).item() / half for c in centred) / len(rows)
        return 1 - (within - covariance) / total if lag else 1.0

    tau, least = -1.0, float("inf")
    for lag in range(0, half - 1, 2):
        pair = rho(lag) + rho(lag + 1)
        if pair <= 0:
            break
        least = min(least, pair)
        tau += 2 * least
    return len(rows) * half / tau


@pytest.mark.parametrize("kept", [30, 61, 200])
def test_the_effective_size_is_that_of_its_definition(kept: int) -> None:
    for phi in (0.3, 0.8, 0.95):
        series = autoregressive(phi, 3, kept) + autoregressive(-0.5, 3, kept)
        assert ess(series).item() == pytest.approx(by_definition(series), rel=1e-6)


def test_chains_that_lie_apart_have_a_large_rhat_and_few_draws() -> None:
    # Means two deviations to either side: W = 1, B/n = 16/3 for the four halves at -2, -2, 2, 2.
    series = noise(2, 1000) + torch.tensor([[-2.0], [2.0]])
    assert rhat(series).item() == pytest.approx((1 + 16 / 3) ** 0.5, rel=0.05)
    assert ess(series).item() < 10


def test_a_chain_that_drifts_disagrees_with_itself() -> None:
    series = noise(4, 100) + torch.linspace(0, 5, 100)
    assert rhat(series).item() > 1.5


def test_a_hand_worked_rhat() -> None:
    # Halves (0, 2), (1, 3), (2, 4), (3, 5): W = 2, means 1, 2, 3, 4 with variance 5/3, so R^2 = (1 + 5/3) / 2.
    series = torch.tensor([[0.0, 2, 2, 4], [1.0, 3, 3, 5]])
    assert rhat(series).item() == pytest.approx((4 / 3) ** 0.5)
    assert rhat(3 * series - 7).item() == pytest.approx((4 / 3) ** 0.5)


def test_chains_that_never_move_are_told_apart_from_mixed_ones() -> None:
    assert rhat(torch.ones(2, 10)).item() == 1
    assert rhat(torch.tensor([[0.0], [1.0]]).expand(2, 10)).item() > 1000
    assert torch.isfinite(ess(torch.ones(2, 10)))


def walked(
    offset: float, points: int = 200, chains: int = 4, drift: float = 0.0, acceptance: float | None = None
) -> Chains:
    """Chains whose log-odds at x are ``w x + 1``, with a weight around ``offset`` times chain; two draws are kept."""
    theta = torch.zeros(chains, points, 4)
    theta[..., 0] = noise(chains, points).float() + offset * torch.arange(chains)[:, None]
    theta[..., 0] += drift * torch.arange(points)
    theta[..., 2] = 1
    seen = logits(NET, theta, X[::4])
    return Chains(theta[:, -2:], noise(chains, 2, seed=2), acceptance, seen=seen)


def logits(net: Network, theta: Tensor, x: Tensor) -> Tensor:
    """As chains record them, ``(chains, points, probes, classes)``."""
    return torch.stack([net(row, x) for row in theta.flatten(0, 1)]).unflatten(0, theta.shape[:2])


def test_mixed_chains_are_noted_without_a_warning() -> None:
    notes = diagnose(walked(0.0))
    assert notes["rhat"] < 1.05
    assert 500 < notes["ess"] < 1200
    assert notes["warnings"] == []
    assert json.loads(json.dumps(notes, allow_nan=False)) == notes


def test_what_is_traced_is_the_potential_and_the_predicted_probability() -> None:
    chains = walked(0.0)
    trace = diagnose(chains)["trace"]
    assert trace["potential"] == chains.potential.tolist()  # of the draws
    first = torch.tensor(trace["probability"][0])  # at x = -1, of all points
    assert first.shape == (4, 200)
    assert torch.allclose(first[:, -2:], (1 - chains.theta[..., 0]).sigmoid(), atol=1e-5)
    assert len(trace["probability"]) == 4


@pytest.mark.parametrize(
    ("drift", "acceptance", "remedy"),
    [
        (0, None, "stays in its own mode"),
        (1, 0.9, "predictions still drift.*more warmup"),
        (0, 0.1, "only 10%.*smaller step"),
    ],
)
def test_chains_that_disagree_are_warned_of_with_a_remedy(drift: float, acceptance: float | None, remedy: str) -> None:
    with pytest.warns(MixingWarning, match=f"have not mixed.*{remedy}") as caught:
        notes = diagnose(walked(3.0, drift=drift, acceptance=acceptance))
    assert notes["rhat"] > 1.5
    assert notes["warnings"] == [str(caught[0].message)]
    assert notes["acceptance"] == acceptance


@pytest.mark.parametrize("points", [4, 5])
def test_few_independent_points_are_warned_of_as_chance_and_few_distant_ones_as_unmixed(points: int) -> None:
    wide, probes = network("linear", (64,), 2), torch.eye(64)  # 64 log-odds that know nothing of each other
    theta = noise(4, points, wide.size).float()
    with pytest.warns(MixingWarning, match=r"not shown to have mixed \(R-hat .* > 1.1, .* by chance\)") as caught:
        notes = diagnose(Chains(theta, noise(4, points), seen=logits(wide, theta, probes)))
    assert notes["rhat"] > 1.1  # by chance alone
    assert notes["warnings"] == [str(caught[0].message)]
    apart = theta + 4 * torch.arange(4)[:, None, None] * (torch.arange(wide.size) < 64)
    with pytest.warns(MixingWarning, match="have not mixed"):
        diagnose(Chains(apart, noise(4, points), seen=logits(wide, apart, probes)))


def test_networks_with_other_parameters_but_the_same_predictions_have_mixed() -> None:
    chains = walked(0.0)
    shifts = 100 * torch.arange(4.0)[:, None, None]  # a shift of all logits changes no probability
    assert chains.seen is not None
    moved = chains._replace(seen=chains.seen + shifts[..., None])
    assert diagnose(moved)["rhat"] == pytest.approx(diagnose(chains)["rhat"], rel=1e-3)


def test_sure_predictions_can_be_judged_too() -> None:
    chains = walked(0.0)
    assert chains.seen is not None
    sure = chains._replace(seen=chains.seen + torch.tensor([300.0, 0]))
    assert bool((sure.seen.diff(dim=-1).abs() > 200 * log(2)).all())  # so probabilities are 1 to the last bit
    assert diagnose(sure)["rhat"] < 1.05


@pytest.mark.parametrize(
    ("chains", "points", "remedy"), [(1, 100, "ask for at least 2 draws"), (4, 3, "only 3 transitions.*set thin to 4")]
)
def test_what_cannot_be_judged_is_warned_of_with_a_remedy(chains: int, points: int, remedy: str) -> None:
    with pytest.warns(MixingWarning, match=remedy) as caught:
        notes = diagnose(walked(9.0, points, chains))
    assert notes["rhat"] is None
    assert notes["warnings"] == [str(caught[0].message)]


def test_a_posterior_is_called_tempered_unless_its_temperature_is_one() -> None:
    assert in_words({"temperature": 0.001, "rhat": 1.034}) == "tempered posterior, T = 0.001, R-hat 1.03"
    assert in_words({"temperature": 1.0, "rhat": None}) == "posterior, T = 1, R-hat not judged"
    assert in_words({"sampler": "ensemble"}) == ""


def test_why_a_walk_stopped_stays_with_it() -> None:
    notes = diagnose(walked(0.0)._replace(stopped="A chain diverged."))
    assert notes["warnings"] == ["A chain diverged."]
