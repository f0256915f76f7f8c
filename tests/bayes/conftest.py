import pytest

from attar.experts import Trajectories
from tests.bayes.small import train_experts


@pytest.fixture(scope="session")
def experts(tmp_path_factory: pytest.TempPathFactory) -> Trajectories:
    """Short trajectories on the small problem."""
    return train_experts(tmp_path_factory.mktemp("experts"))
