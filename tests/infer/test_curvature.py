import sys
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor, nn
from torch.func import grad, jacrev
from torch.nn.functional import cross_entropy

from attar.core.errors import AttarError
from attar.infer.curvature import STRUCTURES, Block, Diagonal, Kron, Mode, diagonal, kron, last_layer, softmax_root
from attar.infer.potential import Prior
from attar.nets import Network, network
from attar.truth import Gaussian, LinearRegression
from tests.known import generator

CURVATURE = sys.modules["attar.infer.curvature"]  # attar.infer is also the name of a function


def mode(net: Network, n: int, seed: int = 0) -> Mode:
    gen = generator(seed)
    x = torch.randn(n, *net.shape, generator=gen, dtype=torch.float64)
    weights = torch.rand(n, generator=gen, dtype=torch.float64) + 0.5
    return Mode(net, net.init(gen).double(), x, weights, Prior(net).std.double())


def exact(at: Mode) -> Tensor:
    """The whole matrix G, example by example, in the units of the prior."""
    total = torch.zeros(at.network.size, at.network.size).double()
    for x, weight in zip(at.x, at.weights, strict=True):
        jacobian = jacrev(lambda theta, x=x: at.network(theta, x[None])[0])(at.theta)
        s = at.root(at.network(at.theta, x[None]))[0]
        total += weight * jacobian.T @ s @ s.T @ jacobian
    return at.std[:, None] * total * at.std


def matrix(block: Block, precision: float = 0.7) -> Tensor:
    """G of one block, from the covariance of the noise that it colours."""
    white = torch.eye(len(block.index)).double()
    coloured = block.colour(white, precision)
    found: Tensor = torch.linalg.inv(coloured.T @ coloured) - precision * white
    return found


def built(shape: tuple[int, ...], *layers: nn.Module) -> Network:
    return Network("user", shape, 3, lambda: nn.Sequential(*layers))


def test_the_softmax_root_squares_to_the_hessian_of_cross_entropy() -> None:
    logits = 2 * torch.randn(4, 5, generator=generator(), dtype=torch.float64)
    s = softmax_root(logits)
    for row, root in zip(logits, s, strict=True):
        assert torch.allclose(root @ root.T, jacrev(grad(cross_entropy))(row, torch.tensor(2)), atol=1e-12)


@pytest.mark.parametrize("n", [4, 40])  # fewer rows than parameters, and more
def test_a_linear_network_s_last_layer_is_its_hessian(n: int) -> None:
    at = mode(network("linear", (6,), 3), n)
    y = torch.arange(n) % 3

    def loss(z: Tensor) -> Tensor:
        return (at.weights * cross_entropy(at.network(z * at.std, at.x), y, reduction="none")).sum()

    (block,) = last_layer(at)
    order = block.index.argsort()
    expected = jacrev(grad(loss))(at.theta / at.std)
    assert torch.allclose(matrix(block)[order][:, order], expected, atol=1e-8)
    assert torch.allclose(block.values.sort().values, torch.linalg.eigvalsh(expected), atol=1e-8)


def test_with_a_gaussian_likelihood_it_is_exact_linear_regression() -> None:
    noise, precision = 0.4, 3.0
    model = LinearRegression(Gaussian.standard(5, precision**-0.5), noise)
    net = Network("line", (5,), 1, lambda: nn.Linear(5, 1, bias=False))
    at = mode(net, 7)._replace(std=torch.ones(5).double(), root=lambda f: torch.ones_like(f)[:, :, None] / noise)
    data = model.sample(torch.ones(5).double(), 7, generator())
    at = at._replace(x=data.x, weights=torch.ones(7).double())
    covariance = model.posterior(data).covariance
    for structure in (last_layer, kron):
        (block,) = structure(at)
        noise_in = block.colour(torch.eye(5).double(), precision)
        assert torch.allclose(noise_in.T @ noise_in, covariance, atol=1e-10)
    (block,) = diagonal(at)
    assert torch.allclose(1 / (block.values + precision), 1 / torch.linalg.inv(covariance).diagonal(), atol=1e-10)


@pytest.mark.parametrize(("name", "shape"), [("mlp-d1w6", (5,)), ("convnet-d1w4", (1, 6, 6))])
def test_the_diagonal_is_that_of_a_loop_over_examples(name: str, shape: tuple[int, ...]) -> None:
    at = mode(network(name, shape, 3), 5)
    (block,) = diagonal(at)
    assert torch.allclose(block.values, exact(at).diagonal(), atol=1e-8)


def test_the_last_layer_of_a_deep_network_is_its_corner_of_the_whole() -> None:
    at = mode(network("convnet-d1w4", (1, 6, 6), 3), 5)
    (block,) = last_layer(at)
    assert torch.allclose(matrix(block), exact(at)[block.index][:, block.index], atol=1e-8)


@pytest.mark.parametrize(
    "net",
    [
        network("linear", (4,), 3),
        built((1, 4, 4), nn.Conv2d(1, 3, 4), nn.Flatten()),  # one place, so a matrix in another order
        built((2, 3, 3), nn.Conv2d(2, 4, 3), nn.ReLU(inplace=True), nn.Flatten(), nn.Linear(4, 3)),
    ],
)
def test_kronecker_factors_are_exact_for_one_example_at_one_place(net: Network) -> None:
    at = mode(net, 1)
    whole = exact(at)
    for block in kron(at):
        assert isinstance(block, Kron)
        assert torch.allclose(matrix(block), whole[block.index][:, block.index], atol=1e-8)


def test_kronecker_factors_are_close_on_the_diagonal_for_more_examples() -> None:
    at = mode(network("mlp-d1w6", (5,), 3), 200)
    whole = exact(at).diagonal()
    for block in kron(at):
        found, expected = matrix(block).diagonal(), whole[block.index]
        assert torch.isclose(found.sum(), expected.sum(), rtol=0.15)
        assert torch.corrcoef(torch.stack([found, expected]))[0, 1] > 0.9


def test_a_convolution_of_constant_images_is_exact_up_to_how_often_it_is_applied() -> None:
    # All T places see the same patch and pass on the same gradient b, so the truth is (T b)(T b)' a a' and the
    # factors, which take places as independent, give T b b' a a'.
    net = built((1, 4, 4), nn.Conv2d(1, 3, 2, bias=False), nn.AvgPool2d(3), nn.Flatten())
    at = mode(net, 1)._replace(x=torch.ones(1, 1, 4, 4).double())
    (block,) = kron(at)
    assert torch.allclose(9 * matrix(block), exact(at), atol=1e-8)


@pytest.mark.parametrize("structure", ["diagonal", "kron"])
def test_every_parameter_lies_in_one_block_and_norms_in_a_diagonal(structure: str) -> None:
    net = network("convnet-d2w4", (1, 8, 8), 3)
    blocks = STRUCTURES[structure](mode(net, 3))
    assert torch.equal(torch.cat([block.index for block in blocks]).sort().values, torch.arange(net.size))
    norms = [
        index.flatten()
        for name, index in net.unflatten(torch.arange(net.size)).items()
        if index.ndim == 1 and not name.startswith("head") and int(name.split(".")[1]) % 4 == 1
    ]
    assert len(norms) == 4
    singles = torch.cat([block.index for block in blocks if isinstance(block, Diagonal)])
    assert set(torch.cat(norms).tolist()) <= set(singles.tolist())
    assert structure == "diagonal" or len(singles) == sum(map(len, norms))


class Twice(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner, self.head = nn.Linear(4, 4), nn.Linear(4, 3, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.head(torch.tanh(self.inner(torch.tanh(self.inner(x)))))
        return out


@pytest.mark.parametrize(
    ("net", "factored"),
    [
        (Network("twice", (4,), 3, Twice), 1),
        (network("mlp-d1w4-weightnorm", (4,), 3), 1),
        (built((2, 4, 4), nn.Conv2d(2, 2, 3, groups=2), nn.Flatten(), nn.Linear(8, 3)), 1),
        (built((3, 2, 2), nn.Conv2d(3, 3, 2, groups=3), nn.Flatten()), 0),
        (built((1, 4, 4), nn.Conv2d(1, 2, 3, padding=1, padding_mode="circular"), nn.Flatten(), nn.Linear(32, 3)), 1),
    ],
)
def test_what_is_no_plain_matrix_applied_once_gets_its_exact_diagonal(net: Network, factored: int) -> None:
    at = mode(net, 3)
    blocks = kron(at)
    assert sum(isinstance(block, Kron) for block in blocks) == factored
    rest = blocks[-1]
    assert torch.allclose(rest.values, exact(at).diagonal()[rest.index], atol=1e-8)


@pytest.mark.parametrize("structure", STRUCTURES)
def test_nothing_depends_on_how_many_examples_are_taken_at_a_time(
    structure: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = mode(network("convnet-d1w4", (1, 6, 6), 3), 5)
    together = STRUCTURES[structure](at)
    sizes: list[int] = []
    chunks = Mode.chunks
    monkeypatch.setattr(Mode, "chunks", lambda self, numbers: _counted(chunks(self, 10**8), sizes))
    for one, other in zip(together, STRUCTURES[structure](at), strict=True):
        assert torch.allclose(matrix(one), matrix(other), atol=1e-8)
    assert set(sizes) == {1}


def _counted(parts: Iterator[Mode], sizes: list[int]) -> Iterator[Mode]:
    for part in parts:
        sizes.append(len(part.x))
        yield part


def test_a_last_layer_that_does_not_fit_names_the_structures_that_do(monkeypatch: pytest.MonkeyPatch) -> None:
    at = mode(network("linear", (6,), 3), 5)
    monkeypatch.setattr(CURVATURE, "BUDGET", 1000)
    with pytest.raises(AttarError, match="structure=kron"):
        last_layer(at)


def test_a_frozen_head_has_no_place_in_theta() -> None:
    def build() -> nn.Module:
        module = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 3))
        module[1].weight.requires_grad_(False)
        return module

    with pytest.raises(AttarError, match="frozen"):
        Network("frozen", (4,), 3, build).head_index()
