import torch

import attar
from attar.condense.contract import NoState, Task
from attar.condense.dd import DD
from attar.condense.mnemonics import Mnemonics, Phase, adjust
from attar.condense.source import Pixels
from tests.known import gaussian_task, generator


class FromPhase(DD):
    """dd that starts from the solution of a phase."""

    def _initial(self, state: object, task: Task, gen: torch.Generator) -> torch.Tensor:
        assert task.theta is not None
        return task.theta


def test_one_phase_is_dd_from_the_solution_of_the_phase() -> None:
    plain = gaussian_task(network="mlp-d1w8")
    task = plain._replace(theta=plain.network.init(generator(3)))
    method = Mnemonics(net_steps=4, step_size=0.1, batch=20)
    start = task.data.sample_per_class(2, generator())
    ours = method.loss(Pixels(start)(), method.init(task, generator()), task, generator(1)).value
    source = Pixels(start, scalars={"rates": [0.1] * 4})
    theirs = FromPhase(epochs=4, batches=1, start="fixed", batch=20).loss(source(), NoState(), task, generator(1)).value
    assert torch.allclose(ours, theirs, rtol=1e-5)


def test_the_network_of_the_phase_is_trained_on_the_data_unless_it_is_given() -> None:
    task = gaussian_task(network="mlp-d1w8")
    theta = Mnemonics(model_steps=100).init(task, generator()).theta
    right = task.network(theta, task.data.x).argmax(1) == task.data.y
    assert float(right.float().mean()) > 0.95
    given = torch.zeros_like(theta)
    assert Mnemonics().init(task._replace(theta=given), generator()) == Phase(given)


def test_adjusting_lowers_the_loss_of_each_half_on_the_other_and_keeps_labels() -> None:
    task = gaussian_task(network="mlp-d1w8")
    theta = task.network.init(generator(5))
    memory, method = task.data.sample_per_class(4, generator()), Mnemonics(net_steps=3, step_size=0.1)
    after = adjust(memory, task.network, theta, method, steps=20, lr=0.5, gen=generator(2))
    assert torch.equal(after.y, memory.y)
    assert not torch.equal(after.x, memory.x)
    one, other = torch.randperm(len(memory), generator=generator(2)).tensor_split(2)

    def crossed(data: attar.Data) -> float:
        return float(method.validation(task.network, theta, data[one], data[other]).detach())

    assert crossed(after) < crossed(memory)
