from __future__ import annotations

from unittest import mock

import pytest

from nearlabel.search.exact import all_pairs


@pytest.fixture(scope="package", autouse=True)
def bounds_for_few_rows():
    """Few rows are searched as many are, so that small data test it; see test_all_pairs.py."""
    with mock.patch.object(all_pairs, "_FEW", 0):
        yield
