"""Networks over a flat parameter vector; one file per architecture."""

from attar.nets.names import NETWORKS, default, network
from attar.nets.network import Network

__all__ = ["NETWORKS", "Network", "default", "network"]
