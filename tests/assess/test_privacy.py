"""Memorised data is found, data that was never seen is not, and a copy is a copy."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

import attar
from attar import Coreset, Data, Split, Training
from attar.assess import privacy
from attar.assess.detect import auroc
from attar.assess.privacy import Membership, membership, nearest, through
from attar.core.errors import AttarError
from attar.data import Spec
from attar.data.transform import ZCA, Standard
from attar.infer import Posterior
from tests.known import digits, gaussians, generator

OVERFIT = Training(steps=40, optimiser="adam", lr=0.01, weight_decay=0)


def noise(n: int, seed: int = 0) -> Data:
    """Examples whose labels can only be learnt by heart."""
    gen = generator(seed)
    x, y = torch.randn(n, 100, generator=gen), torch.randint(2, (n,), generator=gen)
    return Data(x, y, spec=Spec.of(x.shape[1:], ("heads", "tails"), name="noise"))


def only(train: Data) -> Split:
    return Split(train, train[:0], train[:0])


NOISE = only(noise(600))


@pytest.mark.parametrize("seed", range(2))
def test_data_learnt_by_heart_is_found(seed: int) -> None:
    attacked = membership(through("full", network="mlp-d1w64", training=OVERFIT), NOISE, targets=160, seed=seed)
    assert attacked.auroc > 0.5 + 5 * attacked.luck
    assert (attacked.members, attacked.others) == (80, 80)


@pytest.mark.parametrize("seed", range(2))
def test_data_that_was_never_seen_is_not_found(seed: int) -> None:
    elsewhere = noise(60, seed=9)

    def blind(data: Data, seed: int) -> Posterior:
        return attar.infer(elsewhere, draws=1, seed=seed, network="mlp-d1w64", training=OVERFIT)

    found = membership(blind, NOISE, targets=160, shadows=4, seed=seed)
    assert abs(found.auroc - 0.5) < 3 * found.luck


def test_a_small_selected_coreset_leaks_less_than_the_data() -> None:
    chosen = through("uniform", per_class=5, network="mlp-d1w64", training=OVERFIT)
    full = through("full", network="mlp-d1w64", training=OVERFIT)
    small, whole = (membership(make, NOISE, targets=160, shadows=4) for make in (chosen, full))
    assert small.auroc < whole.auroc - 0.2


def test_half_of_the_targets_are_used_once_and_no_shadow_sees_any() -> None:
    train = replace(NOISE.train, x=torch.arange(600.0)[:, None].expand(600, 100))
    seen: list[tuple[set[float], list[int]]] = []

    def watch(data: Data, seed: int) -> Posterior:
        seen.append((set(data.x[:, 0].tolist()), torch.bincount(data.y).tolist()))
        return attar.infer(data, draws=1, seed=seed, network="linear", training=Training(steps=1))

    membership(watch, only(train), targets=100, shadows=24)
    (attacked, _), shadows = seen[0], [rows for rows, _ in seen[1:]]
    assert len(shadows) == 24
    targets = set(range(600)) - set().union(*shadows)  # the rest is all in one of 24 halves, but for a chance of 1e-5
    assert len(targets) == 100
    assert len(targets & attacked) == 50
    assert {len(rows) for rows in shadows} <= {len(attacked) + k for k in (-1, 0, 1)}
    assert len(shadows[0] & shadows[1]) < len(shadows[0])


def test_the_same_seed_gives_the_same_attack() -> None:
    make = through("herding", per_class=5, network="mlp-d1w8", training=Training(steps=10))
    first, again, other = (membership(make, NOISE, targets=40, shadows=2, seed=seed) for seed in (0, 0, 1))
    assert first == again
    assert first != other


def test_progress_and_the_time_left_are_told_before_each_posterior(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    now = 100.0
    monkeypatch.setattr(privacy, "perf_counter", lambda: now)

    def slow(data: Data, seed: int) -> Posterior:
        nonlocal now
        now += 7
        return attar.infer(data, draws=1, seed=seed, network="linear", training=Training(steps=1))

    membership(slow, NOISE, targets=40, shadows=9, watch=said.append)
    assert [line.partition(",")[0] for line in said] == [f"membership: posterior {k} of 10" for k in range(1, 11)]
    assert "left" not in said[0]
    assert [line.partition(", ")[2] for line in said[1:]] == [f"about {7 * k} s left" for k in range(9, 0, -1)]


def test_luck_is_the_error_of_a_rank_sum() -> None:
    gen = generator()
    areas = torch.tensor([auroc(torch.rand(30, generator=gen), torch.rand(20, generator=gen)) for _ in range(3000)])
    known = Membership(0.5, 0, 20, 30)
    assert areas.std().item() == pytest.approx(known.luck, rel=0.05)
    assert str(known).startswith(
        "membership AUROC 0.500 (chance 0.5 ± 0.084)  TPR at 1 % FPR not given: 30 non-members"
    )


def test_the_rate_at_one_percent_is_told_with_its_negatives_and_only_with_enough_of_them() -> None:
    assert Membership(0.6, 0.05, 100, 600).rate == "5.0% of 100 members (6 of 600 non-members misclassified)"
    assert Membership(0.6, 0.05, 100, 499).rate == "not given: 499 non-members, 500 are needed"  # as in older files


def test_validation_and_test_examples_are_non_members() -> None:
    make = through("full", network="mlp-d1w64", training=OVERFIT)
    more = replace(NOISE, val=noise(200, seed=1), test=noise(300, seed=2))
    few, many = (membership(make, split, targets=100, shadows=2) for split in (NOISE, more))
    assert (few.members, few.others, few.tpr) == (50, 50, None)
    assert (many.members, many.others) == (50, 550)
    assert many.tpr is not None
    assert many.tpr > 0.05
    assert many.luck < few.luck


def test_attacks_that_cannot_work_are_refused() -> None:
    with pytest.raises(AttarError, match="at least 2 shadows"):
        membership("uniform", NOISE, shadows=1)
    with pytest.raises(AttarError, match="at least two per class, 4 in all, got 3"):
        membership("uniform", NOISE, targets=3)
    with pytest.raises(AttarError, match="ask for fewer"):
        membership("uniform", NOISE, targets=500)
    with pytest.raises(AttarError, match="did you mean 'uniform'"):
        membership("uniforn", NOISE, targets=40)


def coreset(x: Tensor, like: Data) -> Coreset:
    """A coreset of these examples, scaled as ``like`` is."""
    made = attar.reduce(like, "uniform", per_class=1, network="linear")
    return replace(made, data=replace(like, x=x, y=torch.zeros(len(x)).long()))


LINE = Data(torch.tensor([[0.0, 0], [0, 2], [0, 4], [0, 6]]), torch.tensor([0, 0, 1, 1]))


def test_distances_worked_by_hand() -> None:
    x = torch.tensor([[0.0, 4], [0, 1], [3, 6 + 4], [0, 2.5]])
    assert nearest(coreset(x, LINE), LINE).tolist() == pytest.approx([0, 0.5, 2.5, 0.25])


@pytest.mark.parametrize("fit", [Standard.fit, ZCA.fit])
def test_distances_are_in_the_original_units_whatever_the_scaling(fit: type[Standard]) -> None:
    gen = generator()
    stored = torch.rand(50, 1, 4, 4, generator=gen) * torch.linspace(0.1, 1, 4)
    new = torch.rand(5, 1, 4, 4, generator=gen)
    plain = Data(stored, torch.arange(50) % 2)
    scaled = plain.transformed(fit(stored))
    truth = nearest(coreset(new, plain), plain)
    theirs = coreset(scaled.spec.transform.apply(new), scaled)
    torch.testing.assert_close(nearest(theirs, scaled), truth, rtol=1e-3, atol=1e-4)
    torch.testing.assert_close(nearest(theirs, plain), truth, rtol=1e-3, atol=1e-4)


def test_selected_examples_are_copies_and_noise_is_not() -> None:
    train = digits().train
    picked = attar.reduce(train, "uniform", per_class=3, network="linear")
    assert nearest(picked, train).tolist() == [0] * 30
    whitened = train.transformed(ZCA.fit(picked.pixels()))
    assert nearest(picked, whitened).tolist() == [0] * 30
    strange = replace(picked, data=picked.data.map(lambda x: torch.randn(x.shape, generator=generator())))
    assert nearest(strange, train).min() > 1
    held = replace(picked, data=digits().test)  # other people's digits lie as far as training digits do
    assert nearest(held, train).median().item() == pytest.approx(1, abs=0.1)


def test_distances_do_not_depend_on_the_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    train = digits().train[:200]
    new = replace(attar.reduce(train, "uniform", per_class=1, network="linear"), data=digits().test[:20])
    whole = nearest(new, train)
    monkeypatch.setattr(privacy, "CHUNK", 7)
    torch.testing.assert_close(nearest(new, train), whole)


def test_comparisons_that_cannot_be_made_are_refused() -> None:
    ours = coreset(LINE.x, LINE)
    with pytest.raises(AttarError, match="compare it with the data that it was made from"):
        nearest(ours, gaussians(4))
    with pytest.raises(AttarError, match="at least 2"):
        nearest(ours, LINE[:1])
    with pytest.raises(AttarError, match="exact copy among them: remove duplicates"):
        nearest(ours, LINE[torch.tensor([0, 0, 1, 1])])
