"""Architecture search: networks ranked by training on proxy sets."""

from attar.nas.results import Nas, Proxy, Trial
from attar.nas.run import nas
from attar.nas.spec import NasSpec

__all__ = ["Nas", "NasSpec", "Proxy", "Trial", "nas"]
