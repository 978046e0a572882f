"""Damaged picture files: pixels or an error, in bounded time and memory."""

from collections import Counter
from random import Random

import numpy as np
import pytest
from drawn_pictures import files
from fuzzing.limits import limits
from fuzzing.mutations import mutated_bytes

from nearlabel.features import GridMoments, picture_vectors

pytest.importorskip("PIL.Image")
SECONDS = 5.0  # of computing: a header may promise the 120 million pixels that are allowed


def run(content):
    """Whether the picture was read."""
    with limits(False, SECONDS):
        found = picture_vectors([content], GridMoments())
    for _, reason in found.skipped:
        assert reason.isprintable()
        assert 5 < len(reason) < 400
    assert np.isfinite(found.X).all()
    return len(found.X) == 1


def campaign(runs, seed):
    random, counts, seeds = Random(seed), Counter(), [*files().values()]
    for _ in range(runs):
        content = mutated_bytes(random.choice(seeds), b"", random)
        try:
            counts[run(content)] += 1
        except BaseException as error:
            error.add_note(repr(content))
            raise
    return counts


def test_mutations():
    counts = campaign(400, seed=1)
    assert min(counts.values()) > 40  # mutations are neither too strong nor too weak


@pytest.mark.slow
def test_100_000_mutations(capsys):
    counts = campaign(100_000, seed=0)
    with capsys.disabled():
        print(f"\npictures: {counts[True]:,} read, {counts[False]:,} refused")  # noqa: T201
    assert min(counts.values()) > 10_000
