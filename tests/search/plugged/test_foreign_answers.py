from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nearlabel.search.plugged.foreign_answers import _agree, _nearest


@st.composite
def answers(draw):
    """Neighbors of some rows among twelve, in any order, some missing; distances with ties."""
    m, width = draw(st.integers(1, 4)), draw(st.integers(1, 8))
    rows = [draw(st.permutations(range(12)))[:width] for _ in range(m)]
    missing = st.lists(st.booleans(), min_size=width, max_size=width)
    indices = [[-1 if no else i for i, no in zip(row, draw(missing), strict=True)] for row in rows]
    distance = st.lists(st.integers(0, 3), min_size=width, max_size=width)
    distances = [draw(distance) for _ in range(m)]
    return np.array(indices), np.array(distances, float), draw(st.integers(1, width))


@given(answer=answers(), alone=st.booleans())
def test_the_nearest_of_an_answer(answer, alone):
    indices, distances, k = answer
    near, far, missing = _nearest(indices, distances, k, np.arange(len(indices)) if alone else None)
    assert near.shape == far.shape == (len(indices), k)
    for row, found in enumerate(zip(indices.tolist(), distances.tolist(), strict=True)):
        pairs = sorted(
            (distance, index)
            for index, distance in zip(*found, strict=True)
            if index >= 0 and not (alone and index == row)
        )
        assert (row in missing) == (len(pairs) < k)
        if len(pairs) >= k:
            assert list(zip(far[row].tolist(), near[row].tolist(), strict=True)) == pairs[:k]


def test_distances_agree_but_for_rounding():
    true = np.random.default_rng(0).random((50, 10)) + 1
    true[:, 0] = 0
    rounded = true.astype(np.float32)
    rounded[:, 0] = 1e-3  # rounding error of a zero distance
    assert _agree(rounded, true)
    assert _agree(true, true)
    assert not _agree(true**2, true)
    assert not _agree(1.01 * true, true)
    assert _agree(np.zeros((3, 3)), np.zeros((3, 3)))
