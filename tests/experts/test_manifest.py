from dataclasses import replace

from attar.experts.manifest import Manifest
from attar.nets.train import Training

MANIFEST = Manifest("some-data", "f00d", "linear", (7,), 3, 24, 5, Training(), 0, "float32", 3)


def test_only_the_number_of_trajectories_may_change_without_another_identity() -> None:
    assert replace(MANIFEST, trajectories=9).identity == MANIFEST.identity
    changes = [{"fingerprint": "x"}, {"epochs": 6}, {"training": Training(lr=1.0)}, {"seed": 1}, {"dtype": "float16"}]
    changes += [{"every": 10}]
    identities = {MANIFEST.identity, *(replace(MANIFEST, **change).identity for change in changes)}  # type: ignore[arg-type]
    assert len(identities) == 7


def test_the_identity_of_a_store_is_what_it_was_in_the_first_version() -> None:
    assert MANIFEST.identity == "8204fca2ecca65724bd2d5e9ff142d33"  # else all stores made before are unreadable
