"""Comparison of graphs that must be equal bit for bit, such as those of the two engines."""

from unittest import mock

import numpy as np

import nearlabel as nl
from nearlabel.common import engine


def by_numpy(*arguments, **options):
    with mock.patch.object(engine, "core", return_value=None):
        return nl.neighbor_graph(*arguments, **options)


def assert_same(ours, twin):
    assert ours.indices.dtype == twin.indices.dtype == np.int32
    np.testing.assert_array_equal(ours.indices, twin.indices)
    assert ours.distances.dtype == twin.distances.dtype
    np.testing.assert_array_equal(ours.distances, twin.distances)
    assert ours.distances.tobytes() == twin.distances.tobytes()  # zeros have one sign
    assert ours.recall == twin.recall
    assert ours.n_base == twin.n_base
