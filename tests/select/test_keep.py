import torch

from attar.select.keep import digest, stream
from tests.known import generator


def test_a_stream_starts_where_its_source_stands_and_leaves_it_there() -> None:
    gen = generator(4)
    torch.rand(7, generator=gen)
    before = gen.get_state()
    drawn = torch.rand(5, generator=stream(gen))
    assert torch.equal(gen.get_state(), before)
    assert torch.equal(drawn, torch.rand(5, generator=gen))


def test_every_purpose_and_every_state_has_a_stream_of_its_own() -> None:
    draws = [
        float(torch.rand((), generator=stream(generator(seed), purpose)))
        for seed in (0, 1)
        for purpose in ("", "early", "along")
    ]
    assert len(set(draws)) == 6
    assert draws[1] == float(torch.rand((), generator=stream(generator(0), "early")))


def test_a_digest_tells_apart_bytes_shapes_and_kinds() -> None:
    x = torch.arange(6.0)
    parts = [(x,), (x.reshape(2, 3),), (x.double(),), (x + 1,), (x, "a"), (x, "b")]
    assert len({digest(*part) for part in parts}) == 6
    assert digest(x, "a") == digest(x.clone(), "a")
