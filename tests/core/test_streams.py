from attar.core.streams import seed_of


def test_a_seed_depends_on_purpose_and_every_number() -> None:
    purposes = ("", "evaluation", "other")
    found = {seed_of(purpose, a, b) for purpose in purposes for a in range(30) for b in range(30)}
    assert len(found) == 3 * 30 * 30
    assert seed_of("evaluation", 1, 23) != seed_of("evaluation", 12, 3)
    assert all(0 <= seed < 2**62 for seed in found)


def test_experts_made_before_keep_their_seeds() -> None:
    assert seed_of("", 0, 0) == 788_424_145_663_840_916  # blake2b of "0/0", as their first stores have it
