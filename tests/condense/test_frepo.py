"""Neural feature regression: its objective by hand, and inference as the regression itself."""

import pytest
import torch

import attar
from attar.condense.frepo import FRePo
from attar.infer.head import regressors
from attar.nets.losses import targets
from tests.known import gaussian_task, gaussians, generator


def test_the_objective_is_the_squared_error_of_the_regression_and_the_margin_of_the_labels() -> None:
    task, method = gaussian_task(network="mlp-d1w24"), FRePo(batch=4000, pool=1, ridge=0.1)
    source = method.source(task.data.sample_per_class(2, generator(1)), generator())
    state, syn = method.init(task, generator()), source()
    ours = method.loss(syn, state, task, generator(2)).value
    phi, seen = (regressors(task.network, task.network.features(state.theta[0], x)) for x in (syn.x, task.data.x))
    gram = phi @ phi.T
    inverse = torch.linalg.inv(gram + 0.1 * gram.diagonal().mean() * torch.eye(6))
    said = seen @ phi.T @ inverse @ targets(syn.y, 3)
    error = (said - targets(task.data.y, 3)).square().sum(1).mean() / 2
    assert ours.item() == pytest.approx(error.item() - 1 / 3, rel=0.02)  # one-hot labels are a whole 1 ahead


def test_the_margin_counts_up_to_one_over_the_number_of_classes() -> None:
    task, method = gaussian_task(network="mlp-d1w24"), FRePo(batch=8, pool=1)
    source = method.source(task.data.sample_per_class(1, generator(1)), generator())
    with torch.no_grad():
        source.y.copy_(torch.tensor([[1.0, 0.9, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]))
    found = method.loss(source(), method.init(task, generator()), task, generator())
    assert found.metrics["margin"].item() == pytest.approx((0.1 + 2 / 3) / 3)


def test_it_learns_to_predict_and_its_coreset_is_inferred_by_the_same_regression() -> None:
    data = gaussians(20)
    coreset = attar.reduce(
        data, "frepo", per_class=1, network="mlp-d1w16", options={"batch": 16}, descent={"steps": 60}
    )
    recipe = coreset.recipe
    assert (recipe.sampler, recipe.training.loss) == ("last-layer-vi", "squared")
    assert recipe.sampler_options["rho"] / recipe.sampler_options["gamma"] == pytest.approx(1e-6)
    assert attar.evaluate(attar.infer(coreset, draws=2), gaussians(20, seed=1)).accuracy > 0.95
