"""A method of your own in one file: register a class, and everything that takes a name takes yours."""

from statistics import mean

from pydantic import Field
from pydantic.dataclasses import dataclass
from torch import Generator

import attar
from attar.core.registry import selector
from attar.select.contract import Selection, Selector
from attar.select.view import View


@selector(
    "class-mean-nearest",
    about="nearest to the class mean",
    choose="small sizes",
    takes="1 min",
    paper="the examples nearest to the mean of their class, as in nearest-mean classification",
    cost="a short training, and one forward pass of the data",
)
@dataclass(frozen=True)
class ClassMeanNearest(Selector):
    r"""Pick the examples whose features lie nearest to their mean, :math:`\min_i \|\phi_i - \mu\|_p`.

    The library shows a selector one class at a time, so the mean is the mean of a class.
    """

    norm: float = Field(default=2.0, ge=1, description="p of the distance")

    def select(self, view: View, size: int, gen: Generator) -> Selection:
        features = view.features.double()
        distance = (features - features.mean(0)).norm(p=self.norm, dim=1)
        nearest = distance.argsort()[:size]
        return Selection(nearest, -distance[nearest].float())


if __name__ == "__main__":
    spec = attar.StudySpec(  # a random subset, herding and the full data come beside it, under one training budget
        data="digits",
        methods=["class-mean-nearest"],
        per_class=[1],
        seeds=[0, 1, 2],
        network="mlp",
        training=attar.Training(steps=100),
        converged=False,  # the full data with the same budget is enough here
        options={"class-mean-nearest": {"norm": 1.0}},
    )
    study = attar.compare(spec, folder="own-method")
    for (method, size), runs in study.groups().items():
        accuracy = mean(run.test.accuracy for run in runs)
        print(f"{method:>18} {'all' if size is None else size:>4} per class: {accuracy:.1%}")
