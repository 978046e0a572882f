"""Graphs of the two engines, which must be the same to the last bit."""

from unittest import mock

import numpy as np

import nearlabel as nl
from nearlabel.common import engine


def by_numpy(*arguments, **options):
    with mock.patch.object(engine, "core", return_value=None):
        return nl.neighbor_graph(*arguments, **options)


def assert_same(ours, twin):
    np.testing.assert_array_equal(ours.indices, twin.indices)
    np.testing.assert_array_equal(ours.distances, twin.distances)
