"""The table of architectures: what each is, what builds it, and its options."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from torch import nn

from attar.data.spec import Tokens
from attar.nets.alexnet import alexcifarnet, alexnet
from attar.nets.convnet import convnet
from attar.nets.densenet import densenet121
from attar.nets.inception import inception_v3
from attar.nets.lenet import lenet
from attar.nets.mlp import linear, mlp
from attar.nets.neighbours import Neighbours
from attar.nets.resnet import resnet, resnet32, wrn
from attar.nets.text import bilstm, birnn, embedding_bag, textconv
from attar.nets.vgg import vgg11, vgg16

Options = dict[str, int | str | tuple[int, ...]]  # several widths are one for each layer


@dataclass(frozen=True)
class Architecture:
    """An architecture: a one-line description, its builder, and its options with their defaults.

    ``build`` is called with the shape of an example, or with the table of embeddings where it reads tokens.
    """

    about: str
    build: Callable[..., nn.Module]
    options: Options
    reads: type[Tokens] | None = None  #: the only kind of example that it takes; if None, numbers of any shape


_RESIDUAL: Options = {"norm": "instance", "activation": "relu"}

ARCHITECTURES = {
    "linear": Architecture("softmax regression: one linear layer", linear, {}),
    "mlp": Architecture(
        "multi-layer perceptron: 2 hidden layers of 128 units; mlp-d1w50 sets hidden layers and width",
        mlp,
        {"depth": 2, "width": 128, "activation": "relu"},
    ),
    "convnet": Architecture(
        "blocks of 3x3 convolution, norm, activation, pooling: 3 of width 128; convnet-d5w256 sets blocks and width, "
        "convnet-d3w64x128x256 the width of each block, convnet-d3w32b4 four such stacks side by side",
        convnet,
        {"depth": 3, "width": 128, "branches": 1, "norm": "instance", "activation": "relu", "pool": "avg"},
    ),
    "lenet": Architecture("LeNet-5: two convolutions, three linear layers", lenet, {"activation": "relu"}),
    "alexnet": Architecture(
        "AlexNet for small images: five convolutions, three poolings, one linear layer",
        alexnet,
        {"norm": "none", "activation": "relu", "pool": "max"},
    ),
    "vgg11": Architecture(
        "VGG-11: eight convolutions, five poolings, one linear layer",
        vgg11,
        {"norm": "instance", "activation": "relu", "pool": "max"},
    ),
    "vgg16": Architecture(
        "VGG-16: thirteen convolutions, five poolings, one linear layer",
        vgg16,
        {"norm": "instance", "activation": "relu", "pool": "max"},
    ),
    "alexcifarnet": Architecture(
        "AlexCifarNet of dataset distillation: two convolutions, three linear layers",
        alexcifarnet,
        {"activation": "relu"},
    ),
    "resnet10": Architecture("residual network, one block a stage", partial(resnet, blocks=1), _RESIDUAL),
    "resnet18": Architecture("residual network, two blocks a stage", partial(resnet, blocks=2), _RESIDUAL),
    "resnet32": Architecture("residual network of CIFAR, three stages of five narrow blocks", resnet32, _RESIDUAL),
    "wrn-16-8": Architecture("wide residual network of depth 16 and factor 8", wrn, _RESIDUAL),
    "densenet121": Architecture("densely connected network of 121 layers", densenet121, _RESIDUAL),
    "inception-v3": Architecture("Inception-v3 whose stem keeps the size of small images", inception_v3, _RESIDUAL),
    "embedding-bag": Architecture(
        "mean word embedding and 1 hidden layer of 128 units, for texts; embedding-bag-d2w64 sets layers and width",
        embedding_bag,
        {"depth": 1, "width": 128, "activation": "relu"},
        Tokens,
    ),
    "textconv": Architecture(
        "convolutions over 3, 4 and 5 words, 100 of each, and their maximum, for texts; textconv-w50 sets 50 of each",
        textconv,
        {"width": 100},
        Tokens,
    ),
    "birnn": Architecture(
        "bidirectional recurrent network of 64 units, for texts; birnn-w32 sets the units", birnn, {"width": 64}, Tokens
    ),
    "bilstm": Architecture(
        "bidirectional LSTM of 64 units, for texts; bilstm-w32 sets the units", bilstm, {"width": 64}, Tokens
    ),
}
#: Classifiers that samplers build and nobody trains.
STORED = {
    "knn": Architecture(
        "nearest neighbours among its parameters, as in knn-k3n100: 3 of 100 examples vote",
        Neighbours,
        {"neighbours": 1, "examples": 10},
    )
}
