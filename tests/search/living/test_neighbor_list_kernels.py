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
