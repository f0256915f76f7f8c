import pytest
import torch

import attar
from attar.condense.contract import Task
from attar.condense.kernels import features
from attar.condense.label_distillation import LabelDistillation
from attar.condense.label_solve import solve
from attar.condense.source import Synthetic
from attar.core.errors import AttarError
from tests.known import gaussians, generator

DATA = gaussians(16)
NET = attar.network("mlp-d1w8", DATA.shape, DATA.classes)


def test_ridge_with_one_full_batch_has_its_optimum_where_label_solve_ends() -> None:
    task, base = Task(DATA, NET, 3), DATA.sample_per_class(2, generator())
    method = LabelDistillation(
        alpha=1.0, ridge=0.01, scale=1.0, minibatch=100, batch=100, labels="targets", objective="squared"
    )
    state = method.init(task, generator(1))
    kernel = lambda a, b: features(NET, state.theta, a, b)  # noqa: E731
    found = solve(base.x, DATA, [kernel], 0.01)
    y = (found.labels + 1 / 3).requires_grad_()
    still = state._replace(theta=state.theta.clone())

    class Still(LabelDistillation):
        def _train(self, base: object, state: object, task: object) -> object:  # type: ignore[override]
            return state

    same = Still(alpha=1.0, ridge=0.01, scale=1.0, minibatch=100, batch=100, labels="targets", objective="squared")
    loss = same.loss(Synthetic(base.x, y, spec=DATA.spec), still, task, generator(2))
    (slope,) = torch.autograd.grad(loss.value, y)
    assert float(loss.value.detach()) == pytest.approx(float(found.loss), rel=1e-5)
    assert float(slope.abs().max()) < 1e-7


@pytest.mark.parametrize("order", ["ridge", "second"])
def test_examples_stay_and_labels_become_probabilities_that_train_a_network(order: str) -> None:
    options = {"order": order, "alpha": 0.1, "batch": 48, "net_lr": 0.01}
    made = attar.reduce(
        DATA, "label-distillation", per_class=2, network="mlp-d1w8", options=options, descent={"steps": 200}
    )
    assert {tuple(row) for row in made.data.x.tolist()} <= {tuple(row) for row in DATA.x.tolist()}
    assert torch.allclose(made.data.y.sum(1), torch.ones(6))
    right = attar.infer(made, draws=2).predict(DATA.x).argmax(1) == DATA.y
    assert float(right.float().mean()) > 0.95


def test_the_network_is_reset_when_accuracy_stops_improving_and_the_length_is_recommended() -> None:
    task, base = Task(DATA, NET, 3), DATA.sample_per_class(1, generator())
    method = LabelDistillation(patience=3, batch=48, alpha=0.5)
    source, state, lengths = method.source(base, generator()), None, []
    state = method.init(task, generator(1))
    for number in range(60):
        before = int(state.steps)
        state = method.loss(source(), state, task, generator(number)).state
        if int(state.steps) == 0:
            lengths.append(before + 1)
            assert state.length == before + 1
            assert not bool(state.head.any())
    assert lengths
    assert method.recommend(state) == {"steps": state.length}


@pytest.mark.parametrize("method", ["label-distillation", "label-solve"])
def test_the_base_may_be_another_data_set_with_other_classes(method: str) -> None:
    base = gaussians(20, classes=5, seed=7)
    descent = {"steps": 3} if method == "label-distillation" else None
    made = attar.reduce(DATA, method, per_class=2, network="mlp-d1w8", base=base, descent=descent)
    stored = {tuple(row) for row in base.x.tolist()}
    assert {tuple(row) for row in made.data.x.tolist()} <= stored
    assert made.data.y.shape == (6, 3)
    assert made.recipe.start is not None


def test_a_base_that_does_not_fit_is_refused() -> None:
    small, other = gaussians(1, classes=2), gaussians(16, size=5)
    for base, words in ((small, "has 2 examples, and 6 are asked for"), (other, "Base examples have shape")):
        with pytest.raises(AttarError, match=words):
            attar.reduce(DATA, "label-distillation", per_class=2, network="mlp-d1w8", base=base)
    with pytest.raises(AttarError, match="learns no labels alone"):
        attar.reduce(DATA, "dm", per_class=2, network="mlp-d1w8", base=DATA)
