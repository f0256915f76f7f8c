import pytest
import torch
from torch import Tensor

import attar
from attar.condense.contract import NoState, Task
from attar.condense.dd import DD, by_turns
from attar.condense.source import Pixels, Synthetic
from attar.core.errors import AttarError, Diverged
from attar.data import Data
from attar.experts import Schedule, experts
from attar.infer.unrolled import Unrolled, fixed
from attar.nets import network
from attar.nets.objective import Objective
from attar.nets.train import Training
from tests.known import gaussian_task, gaussians, generator

DATA = gaussians(16)


def test_the_meta_gradient_passes_gradcheck_in_examples_and_in_every_rate() -> None:
    net = network("mlp-d1w3-sigmoid", (3,), 2)
    real = Data(torch.randn(6, 3, dtype=torch.float64, generator=generator(4)), torch.arange(6) % 2)
    method, task, y = DD(epochs=2, start="fixed", batch=6), Task(real, net, 2), torch.tensor([0, 1, 0, 1])

    def meta(x: Tensor, logs: Tensor) -> Tensor:
        syn = Synthetic(x, y, spec=real.spec, scalars={"rates": logs.exp()})
        return method.loss(syn, NoState(), doubled, generator()).value

    class Double(DD):
        def _initial(self, state: object, task: Task, gen: torch.Generator) -> Tensor:
            return fixed(task.network, 0, task.data.device).double()

    method, doubled = Double(epochs=2, start="fixed", batch=6), task
    x = torch.randn(4, 3, dtype=torch.float64, generator=generator(2), requires_grad=True)
    logs = torch.linspace(-2, -1, 4, dtype=torch.float64).requires_grad_()
    assert torch.autograd.gradcheck(meta, (x, logs))


def test_one_step_on_a_linear_model_reaches_the_least_squares_solution() -> None:
    data = gaussians(20, classes=3, size=4)
    coreset = attar.reduce(
        data,
        "dd",
        per_class=4,
        network="linear",
        options={"start": "fixed", "epochs": 1, "batches": 1, "objective": "squared", "batch": 60, "step_size": 1.0},
        descent={"steps": 300, "lr": 0.1, "clip": None},
    )
    posterior = attar.infer(coreset, draws=1)
    reached = Objective(posterior.network, "squared").value(posterior.theta[0], data)
    rows = torch.cat([data.x, torch.ones(len(data), 1)], 1).double()
    wanted = torch.eye(3, dtype=torch.float64)[data.y] - 1 / 3
    left = wanted - rows @ torch.linalg.lstsq(rows, wanted).solution
    best = left.square().sum(1).mean() / 2
    assert float(best) <= float(reached) <= 1.02 * float(best)


def test_every_step_of_every_epoch_has_its_own_rate_and_the_sampler_takes_them() -> None:
    options = {"epochs": 3, "batches": 2, "start": "fixed", "inits": 1, "batch": 8}
    coreset = attar.reduce(DATA, "dd", per_class=2, network="linear", options=options, descent={"steps": 4})
    rates = coreset.recipe.sampler_options["rates"]
    assert len(rates) == 6
    assert len(set(rates)) == 6
    assert coreset.recipe.sampler == "unrolled"
    assert coreset.data.hard.tolist() == [0, 1, 2, 0, 1, 2]
    assert len(attar.infer(coreset, draws=4).theta) == 1  # one fixed start, one result


def test_the_objective_is_the_loss_of_the_network_that_the_sampler_trains() -> None:
    task, method = gaussian_task(network="mlp-d1w8"), DD(epochs=2, start="fixed", batch=1000)
    syn = Pixels(task.data.sample_per_class(2, generator()), scalars={"rates": [0.1, 0.2, 0.05, 0.3]})()
    loss = method.loss(syn, NoState(), task, generator()).value.detach()
    sampler = Unrolled(rates=(0.1, 0.2, 0.05, 0.3), init_seed=0)
    theta = sampler.infer(syn, task.network, Training(), 1, generator()).theta[0]
    assert float(loss) == pytest.approx(float(Objective(task.network).value(theta, task.data)), rel=1e-5)


def test_examples_stand_in_the_order_of_training() -> None:
    y = torch.tensor([0, 0, 1, 1, 2, 2])
    data = Data(torch.arange(6.0)[:, None], y)
    assert data.x[by_turns(data)].flatten().tolist() == [0, 2, 4, 1, 3, 5]


def test_pretrained_weights_come_from_experts_of_any_data(tmp_path_factory: pytest.TempPathFactory) -> None:
    other = gaussians(16, seed=5)
    folder = tmp_path_factory.mktemp("experts")
    store = experts(other, "mlp-d1w8", Schedule(2, 2, Training(batch=16, lr=0.05)), folder=folder)
    for start in ("fixed-pretrained", "random-pretrained"):
        options = {"start": start, "epochs": 1, "batch": 8}
        made = attar.reduce(
            DATA, "dd", per_class=1, network="mlp-d1w8", options=options, descent={"steps": 2}, experts=store
        )
        assert made.recipe.experts == store.manifest.identity
    with pytest.raises(AttarError, match="experts"):
        attar.reduce(DATA, "dd", per_class=1, network="mlp-d1w8", options=options, descent={"steps": 2})


def test_training_that_diverges_names_the_rates() -> None:
    options = {"step_size": 1e30, "epochs": 3, "batch": 8, "objective": "squared"}
    with pytest.raises(Diverged, match=r"learnt step size 1e\+30"):
        attar.reduce(DATA, "dd", per_class=1, network="linear", options=options, descent={"steps": 2})


def test_more_batches_than_examples_are_refused() -> None:
    with pytest.raises(AttarError, match="set batches to fewer"):
        attar.reduce(DATA, "dd", per_class=1, network="linear", options={"batches": 4}, descent={"steps": 2})


def test_coresets_that_learnt_other_steps_are_not_merged() -> None:
    options = {"start": "fixed", "batch": 8}
    one, other = (
        attar.reduce(DATA, "dd", per_class=1, network="linear", options=options, descent={"steps": 2}, seed=seed)
        for seed in (0, 1)
    )
    with pytest.raises(AttarError, match="made for different learnt rates"):
        one.merge(other)
