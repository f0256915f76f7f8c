import torch

import attar
from attar.condense.contract import NoState, Task
from attar.condense.dd import DD
from attar.condense.mnemonics import Mnemonics, Phase
from attar.condense.source import Pixels
from tests.known import gaussian_task, generator


class FromPhase(DD):
    """dd that starts from the solution of a phase."""

    def _initial(self, state: object, task: Task, gen: torch.Generator) -> torch.Tensor:
        assert task.theta is not None
        return task.theta[0]


def test_one_phase_is_dd_from_the_solution_of_the_phase() -> None:
    plain = gaussian_task(network="mlp-d1w8")
    task = plain._replace(theta=plain.network.init(generator(3))[None])
    method = Mnemonics(net_steps=4, step_size=0.1, batch=20)
    start = task.data.sample_per_class(2, generator())
    ours = method.loss(Pixels(start)(), method.init(task, generator()), task, generator(1)).value
    source = Pixels(start, scalars={"rates": [0.1] * 4})
    theirs = FromPhase(epochs=4, batches=1, start="fixed", batch=20).loss(source(), NoState(), task, generator(1)).value
    assert torch.allclose(ours, theirs, rtol=1e-5)


def test_the_network_of_the_phase_is_trained_on_the_data_unless_it_is_given() -> None:
    task = gaussian_task(network="mlp-d1w8")
    theta = Mnemonics(model_steps=100).init(task, generator()).theta
    right = task.network(theta[0], task.data.x).argmax(1) == task.data.y
    assert float(right.float().mean()) > 0.95
    given = torch.zeros_like(theta)
    assert Mnemonics().init(task._replace(theta=given), generator()) == Phase(given)


def test_adjusting_lowers_the_loss_of_each_half_on_the_other_and_keeps_labels() -> None:
    task = gaussian_task(network="mlp-d1w8")
    theta = task.network.init(generator(5))
    memory = task.data.sample_per_class(4, generator())
    method = Mnemonics(net_steps=3, step_size=0.1, adjust_steps=20, adjust_lr=0.5)
    after = method.adjust(memory, task.network, theta[None], generator(2))
    assert torch.equal(after.y, memory.y)
    assert not torch.equal(after.x, memory.x)
    mixed = torch.randperm(len(memory), generator=generator(2))
    by_class = mixed[memory.y[mixed].argsort(stable=True)]
    one, other = by_class[::2], by_class[1::2]
    assert torch.bincount(memory.y[one]).tolist() == [2, 2, 2]

    def crossed(data: attar.Data) -> float:
        return float(method.validation(task.network, theta, data[one], data[other]).detach())

    assert crossed(after) < crossed(memory)


def test_no_steps_of_adjustment_and_other_methods_leave_the_memory() -> None:
    task = gaussian_task(network="mlp-d1w8")
    theta, memory = task.network.init(generator(5))[None], task.data.sample_per_class(4, generator())
    for method in (Mnemonics(adjust_steps=0), DD()):
        assert torch.equal(method.adjust(memory, task.network, theta, generator()).x, memory.x)


@torch.no_grad()
def test_each_step_draws_one_of_several_networks() -> None:
    task = gaussian_task(network="mlp-d1w8")
    theta = torch.stack([task.network.init(generator(seed)) for seed in (1, 2)])
    method, start = Mnemonics(net_steps=2), Pixels(task.data.sample_per_class(2, generator()))()
    for seed in range(8):
        gen = generator(seed)
        real, drawn = task.data.sample(method.batch, gen), int(torch.randint(2, (), generator=gen))
        wanted = method.validation(task.network, theta[drawn], start, real)
        assert torch.equal(method.loss(start, Phase(theta), task, generator(seed)).value, wanted)
