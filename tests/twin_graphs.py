"""Comparison of graphs that must be equal bit for bit, such as those of the two engines."""

from contextlib import ExitStack, contextmanager
from unittest import mock

import numpy as np

import nearlabel as nl
from nearlabel.common import engine
from nearlabel.search.exact import byte_bounds, index
from nearlabel.search.exact.packed_bounds import DenseBounds


def by_numpy(*arguments, **options):
    with mock.patch.object(engine, "core", return_value=None):
        return nl.neighbor_graph(*arguments, **options)


@contextmanager
def bytes_wanted(wanted=True):
    """Whether dense rows are bounded by bytes: on any processor, and however loose the bounds."""
    with ExitStack() as patches:
        patches.enter_context(
            mock.patch.object(engine.core(), "multiplies_bytes", return_value=wanted)
        )
        if wanted:
            loose = {"_MOST_OPEN": np.inf, "_SAMPLE": (8, 24), "_LEAST_WIDTH": 1}
            patches.enter_context(mock.patch.multiple(byte_bounds, **loose))
            patches.enter_context(mock.patch.object(DenseBounds, "are_vague", return_value=False))
            patches.enter_context(mock.patch.object(index, "tree_wins", return_value=False))
        yield


def assert_same(ours, twin):
    assert ours.indices.dtype == twin.indices.dtype == np.int32
    np.testing.assert_array_equal(ours.indices, twin.indices)
    assert ours.distances.dtype == twin.distances.dtype
    np.testing.assert_array_equal(ours.distances, twin.distances)
    assert ours.distances.tobytes() == twin.distances.tobytes()  # zeros have one sign
    assert ours.recall == twin.recall
    assert ours.n_base == twin.n_base
