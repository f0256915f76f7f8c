"""Networks over a flat parameter vector; one file per architecture."""

from attar.nets.names import NETWORKS, default, network
from attar.nets.network import Network
from attar.nets.passes import in_parts

__all__ = ["NETWORKS", "Network", "default", "in_parts", "network"]
