"""Draw the pictures of the documentation: ``python docs/pictures.py [NAME...]`` writes docs/pictures.

What they show is computed here, with fixed seeds; accuracies are those of the committed study on digits.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import torch
from PIL import Image
from tables import RESULTS
from torch import Tensor

import attar
from attar.assess.statistics import t_interval
from attar.bayes.models import distil
from attar.core.files import write_text
from attar.data import Data
from attar.report.images import data_uri, strip
from attar.report.svg import drawing, marker, number, path, rect, text
from attar.study import Study
from attar.study.spec import CONVERGED
from attar.truth import Gaussian, LinearRegression

FOLDER = Path(__file__).parent / "pictures"
SIDE = 190.0  #: of a panel


def idea() -> str:
    """Ten images, chosen at random, selected or learnt, and how accurate networks are that saw no others."""
    study = Study.load(RESULTS / "digits" / "study.json")
    scores = {name: t_interval([100 * run.test.accuracy for run in runs]) for name, runs in study.groups().items()}
    words = {"uniform": "random", "herding": "selected", "dm": "learnt"}
    parts = [text(0, 14, "Ten images instead of 1,295", "group")]
    parts += [text(640, 14, "test accuracy", "name", "end")]
    for row, (name, about) in enumerate(words.items()):
        top, (mean, half) = 30 + 54 * row, scores[name, 1]
        label = text(0, top + 19, about, "group") + text(0, top + 36, f"({name})", "name")
        parts += [label, *_shown(coreset(name), 90, top)]
        parts += [f'<g class="c{row + 1}">{rect(520, top + 28, 1.2 * mean, 8, "bar")}</g>']
        parts += [text(520, top + 19, f"{mean:.1f} %", "group"), text(640, top + 19, f"± {half:.1f}", "name", "end")]
    mean, _ = scores[CONVERGED, None]
    parts += [text(90, 210, f"All 1,295 images, trained to convergence: {mean:.1f} %", "name")]
    title = "Ten images of digits at random, by herding and learnt by dm, with the accuracy of networks trained on them"
    return drawing(640, 214, title, parts, standalone=True)


def condensation() -> str:
    """Ten digits by several condensers, beside the real ones that they started from."""
    names = {"uniform": "real (start)", "k-means-centres": "k-means-centres", "dm": "dm", "dc": "dc"}
    parts: list[str] = []
    for row, (name, about) in enumerate(names.items()):
        parts += [text(0, 24 + 50 * row, about, "group"), *_shown(coreset(name), 130, 50 * row)]
    return drawing(
        550, 196, "Ten digits: real ones, centres of k-means, learnt by dm and learnt by dc", parts, standalone=True
    )


def selection() -> str:
    """Ten of two hundred points by four selectors: how they treat dense and sparse places."""
    gen = torch.Generator().manual_seed(0)
    groups = ((120, 0.5, (0.0, 0.0)), (60, 0.25, (2.2, 1.2)), (20, 0.6, (0.6, 3.0)))
    points = torch.cat([s * torch.randn(n, 2, generator=gen) + torch.tensor(place) for n, s, place in groups])
    panels = []
    for name in ("uniform", "herding", "k-center", "k-means"):
        chosen = attar.select(points.numpy(), name, size=10).indices.tolist()
        panels.append(
            (name, [*_cloud(points, points, "seed c-random", 2.0), *_cloud(points[chosen], points, "mark c2", 4.5)])
        )
    return drawing(4 * (SIDE + 20), SIDE + 30, "Ten points by four selectors", _panels(panels), standalone=True)


def pseudo_coresets() -> str:
    """Posteriors of three observations, random or learnt, beside that of all three hundred."""
    gen = torch.Generator().manual_seed(0)
    model = LinearRegression(Gaussian.standard(2))
    data = model.sample(torch.tensor([1.0, -2.0]).double(), 300, gen)
    weights = torch.full((3,), 100.0).double()
    few = [data.sample(3, gen) for _ in range(6)]
    random = [model.posterior(Data(part.x, part.y, weights)) for part in few]
    learnt = model.posterior(distil(model, data, 3, gen, weights="learnt", steps=600))
    frame = torch.tensor([[-1.5, -4.5], [3.5, 0.5]]).double()
    truth = _ring(model.posterior(data))
    panels = []
    for name, rings in (("random, six times", [_ring(found) for found in random]), ("learnt", [_ring(learnt)])):
        lines = [path(_place(ring, frame), "curve c2") for ring in rings]
        panels.append((name, [path(_place(truth, frame), "curve broad c1"), *lines]))
    key = [
        text(2 * (SIDE + 20), 60, "all 300 observations", "series c1"),
        text(2 * (SIDE + 20), 84, "three observations", "series c2"),
    ]
    title = "Posteriors of three random observations miss that of all data; that of three learnt ones covers it"
    return drawing(2 * (SIDE + 20) + 150, SIDE + 30, title, [*_panels(panels), *key], standalone=True)


def samplers() -> str:
    """What one network, an ensemble and chains predict from eight points."""
    x = torch.tensor(
        [[-1.0, 0.4], [-0.7, -0.6], [-1.2, -0.1], [-0.6, 0.2], [1.0, -0.3], [0.7, 0.5], [1.2, 0.2], [0.6, -0.2]]
    )
    data = Data(x, (x[:, 0] > 0).long())
    axis = torch.linspace(-3, 3, 48)
    grid = torch.stack(torch.meshgrid(-axis, axis, indexing="ij")[::-1], -1).flatten(0, 1)
    settings = {"one network": ("ensemble", 1, {}), "ensemble of 20": ("ensemble", 20, {})}
    settings["hmc, T = 1"] = ("hmc", 40, {"temperature": 1.0, "prior_scale": 3.0, "thin": 10})
    panels = []
    for name, (sampler, draws, options) in settings.items():
        budget = attar.Training(steps=300, batch=8, lr=0.01, optimiser="adam")
        found = attar.infer(data, sampler, draws=draws, network="mlp-w16", training=budget, options=options)
        p = found.predict(grid)[:, 1].reshape(48, 48)
        place = f'width="{number(SIDE)}" height="{number(SIDE)}" preserveAspectRatio="none"'
        shown = [f'<image href="{data_uri(_heat(p))}" {place}/>']
        frame = torch.tensor([[-3.0, -3.0], [3.0, 3.0]])
        shown += [
            marker(a, b, ("circle", "square")[int(y)], "mark c-full", r=4)
            for (a, b), y in zip(_place(x, frame), data.y, strict=True)
        ]
        panels.append((name, shown))
    return drawing(
        3 * (SIDE + 20), SIDE + 30, "Predictions from eight points by three samplers", _panels(panels), standalone=True
    )


_made: dict[str, Tensor] = {}


def coreset(name: str) -> Tensor:
    """The images of one method with the settings and the first seed of the committed study."""
    if name not in _made:
        config = Study.load(RESULTS / "digits" / "study.json").config
        training, descent = attar.Training(**config["training"]), config["descent"].get(name)
        found = attar.reduce(
            "digits", name, per_class=1, seed=0, network=config["network"], training=training, descent=descent
        )
        _made[name] = found.pixels()
    return _made[name]


def _shown(pixels: Tensor, left: float, top: float) -> list[str]:
    image = strip(pixels, 10, 5)
    place = f'x="{left}" y="{top}" width="{image.width}" height="{image.height}" style="image-rendering: pixelated"'
    return [f'<image href="{data_uri(image)}" {place}/>']


def _panels(panels: Iterable[tuple[str, list[str]]]) -> Iterator[str]:
    for column, (name, parts) in enumerate(panels):
        inside = f'<svg y="24" width="{SIDE}" height="{SIDE}" viewBox="0 0 {SIDE} {SIDE}">{"".join(parts)}</svg>'
        frame = rect(0, 24, SIDE, SIDE, "cell")
        left = number(column * (SIDE + 20))
        yield f'<g transform="translate({left} 0)">{text(0, 14, name, "group")}{inside}{frame}</g>'


def _cloud(points: Tensor, within: Tensor, kind: str, r: float) -> list[str]:
    frame = torch.stack([within.amin(0) - 0.3, within.amax(0) + 0.3])
    return [marker(x, y, "circle", kind, r=r) for x, y in _place(points, frame)]


def _place(points: Tensor, frame: Tensor) -> list[tuple[float, float]]:
    """Points in the pixels of a panel that shows ``frame``, its lower left and upper right corner."""
    share = (points - frame[0]) / (frame[1] - frame[0])
    return [(SIDE * x, SIDE * (1 - y)) for x, y in share.tolist()]


def _ring(found: Gaussian) -> Tensor:
    """The ellipse that holds 95 % of a Gaussian in the plane."""
    angle = torch.linspace(0, 2 * math.pi, 73).double()
    return found.mean + math.sqrt(5.99) * torch.stack([angle.cos(), angle.sin()], 1) @ found.factor.T


def _heat(p: Tensor) -> Image.Image:
    """Probabilities as colours: blue is 0, white is one half, orange is 1."""
    share = (2 * p - 1)[..., None]
    low, high, white = torch.tensor([11.0, 111.0, 184.0]), torch.tensor([201.0, 74.0, 6.0]), torch.full((3,), 250.0)
    colours = torch.where(share < 0, white - share * (low - white), white + share * (high - white))
    return Image.fromarray(colours.round().to(torch.uint8).numpy())


PICTURES: dict[str, Callable[[], str]] = {
    "idea": idea,
    "selection": selection,
    "condensation": condensation,
    "pseudo-coresets": pseudo_coresets,
    "samplers": samplers,
}


def main(names: list[str]) -> None:
    """Write the pictures of these names, or all."""
    if unknown := set(names) - PICTURES.keys():
        sys.exit(f"There is no picture {', '.join(sorted(unknown))}: choose from {', '.join(PICTURES)}.")
    FOLDER.mkdir(exist_ok=True)
    for name in names or PICTURES:
        write_text(FOLDER / f"{name}.svg", PICTURES[name]() + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
