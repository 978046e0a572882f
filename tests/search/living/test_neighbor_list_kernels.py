"""The kernels that change neighbor lists: equal to their NumPy twins, and safe for any input."""

from itertools import pairwise
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from living_rows import added, histories

from nearlabel.common import engine
from nearlabel.search.living import kept_neighbors
from nearlabel.search.living.kept_neighbors import KeptNeighbors

pytestmark = [pytest.mark.kernels, pytest.mark.usefixtures("compiled_core")]

CORE = pytest.importorskip("nearlabel._core", reason="the compiled core was not built")


@given(histories(least=10), st.integers(1, 4), st.sampled_from([0, 2, 100]), st.data())
def test_changes_of_lists(states, k, few, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    n, width = len(states[0].x), k + 3
    graph = states[0].graph(np.arange(n), min(width + 1, n - 1))
    both = {core: KeptNeighbors.of(graph.take(np.arange(n)), k) for core in (CORE, None)}
    for before, after in pairwise(states):
        n, seed = len(before.x), rng.integers(0, 2**32)
        gone = np.flatnonzero(before.alive & ~after.alive[:n])
        changes = []
        for core, kept in both.items():
            with (
                mock.patch.object(engine, "core", return_value=core),
                mock.patch.object(kept_neighbors, "_FEW", few),
            ):
                if len(after.x) > n:
                    order = np.random.default_rng(seed)
                    # Some of these pairs are at the limit, beyond it, or of removed rows.
                    limits = kept.limits() + order.integers(0, 2, n)
                    limits[~before.alive] = 3
                    changes.append(added(kept, after.arrivals(n, width, limits, order)))
                else:
                    search = lambda places: after.graph(places, kept.width)  # noqa: B023, E731
                    changes.append((kept.pointing_at(gone), *kept.remove(gone, search)))
        ours, twin = both.values()
        for name in ("places", "distances", "lengths"):
            assert getattr(ours, name).tobytes() == getattr(twin, name).tobytes()
        for mine, theirs in zip(*changes, strict=True):
            assert mine.dtype == theirs.dtype
            np.testing.assert_array_equal(mine, theirs)


def arrays(**changed):
    """Two lists of three places; the second has one entry."""
    given = {
        "places": np.array([[1, 2, 3], [0, -1, -1]], np.int32),
        "distances": np.array([[1.0, 2.0, 3.0], [1.0, np.inf, np.inf]]),
        "lengths": np.array([3, 1], np.int32),
    }
    return {**given, **changed}


LISTS = [
    ({"lengths": np.array([3], np.int32)}, "lengths.*entry"),
    ({"lengths": np.array([4, 1], np.int32)}, "lengths.*width"),
    ({"lengths": np.array([-1, 1], np.int32)}, "lengths.*width"),
    ({"places": np.zeros((2, 6), np.int32)[:, ::2]}, "places.*contiguous"),
]
WITH_DISTANCES = [
    *LISTS,
    ({"distances": np.zeros((2, 6))[:, ::2]}, "distances.*contiguous"),
    ({"distances": np.zeros((2, 2))}, "shape"),
    ({"distances": np.zeros((3, 3))}, "shape"),
]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        *WITH_DISTANCES,
        ({"row": np.array([2, 0])}, "rows"),
        ({"row": np.array([-1, 0])}, "rows"),
        ({"row": np.array([0])}, "size"),
        ({"distance": np.array([0.5])}, "size"),
    ],
)
def test_insertions_refuse_invalid_input(changed, message):
    new = {
        "row": np.array([0, 0]),
        "place": np.array([9, 8], np.int32),
        "distance": np.array([2.0, 1.5]),
    }
    lists = arrays()
    CORE.insert_neighbors(**lists, **new)
    assert lists["places"].tolist() == [[1, 8, 2], [0, -1, -1]]
    assert lists["distances"][0].tolist() == [1, 1.5, 2]
    with pytest.raises(ValueError, match=message):
        CORE.insert_neighbors(**{**arrays(), **new, **changed})


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        *WITH_DISTANCES,
        ({"rows": np.array([2])}, "rows"),
        ({"rows": np.array([-1])}, "rows"),
        ({"gone": np.array([0, 0, 1], np.uint8)}, "places"),
        ({"lengths": np.array([3, 2], np.int32), "rows": np.array([1])}, "places"),
    ],
)
def test_removals_refuse_invalid_input(changed, message):
    given = {"rows": np.array([0]), "gone": np.array([0, 1, 0, 1], np.uint8)}
    lists = arrays()
    CORE.drop_neighbors(**lists, **given)
    assert lists["places"].tolist() == [[2, -1, -1], [0, -1, -1]]
    assert lists["lengths"].tolist() == [1, 1]
    with pytest.raises(ValueError, match=message):
        CORE.drop_neighbors(**{**arrays(), **given, **changed})


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        *LISTS,
        ({"gone": np.array([0, 0, 1], np.uint8)}, "places"),
        ({"gone": np.array([0, 0, 1], np.uint8), "few": np.array([2], np.int32)}, "places"),
        ({"left": np.zeros(1, np.int32)}, "left"),
        ({"first": np.zeros(3, np.int32)}, "first"),
    ],
)
def test_scans_refuse_invalid_input(changed, message):
    lists = {name: part for name, part in arrays().items() if name != "distances"}
    given = {
        **lists,
        "gone": np.array([0, 0, 1, 1], np.uint8),
        "few": np.zeros(0, np.int32),
        "left": np.zeros(2, np.int32),
        "first": np.zeros(2, np.int32),
    }
    for few in ([], [3, 2]):
        CORE.left_without(**{**given, "few": np.array(few, np.int32)})
        assert given["left"].tolist() == [1, 1]
        assert given["first"].tolist() == [1, 1]
    with pytest.raises(ValueError, match=message):
        CORE.left_without(**{**given, **changed})
