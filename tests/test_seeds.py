"""Every random stream has a name, and none repeats another."""

from itertools import product
from typing import get_args

from coarse2fine._util.seeds import Stream, seed_of


def test_a_place_gives_this_very_seed_on_every_machine():
    assert seed_of("batches", 3, 1, 4) == 8617545965716175852
    assert 0 <= seed_of("weights", 0) < 2**63


def test_no_two_streams_and_no_two_places_have_the_same_seed():
    places = [place for length in range(5) for place in product(range(6), repeat=length)]
    streams = get_args(Stream)
    seeds = {seed_of(stream, *place) for stream in streams for place in places}
    assert len(seeds) == len(streams) * len(places)


def test_a_longer_place_with_zeros_is_another_place():
    assert len({seed_of("layers", *[0] * length) for length in range(1, 6)}) == 5
    assert seed_of("layers", 1, 11) != seed_of("layers", 11, 1)
    assert seed_of("layers", 1 << 32) != seed_of("layers", 0, 1)
