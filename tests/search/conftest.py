from unittest import mock

import pytest

from nearlabel.search.approximate import inverted_lists as lists
from nearlabel.search.approximate import probe_counts as plans


@pytest.fixture(scope="module")
def small_lists():
    """Use lists for few rows, and measure recall on few rows."""
    few = {"_ROWS_TUNED": 16, "ROWS_MEASURED": 32}
    with (
        mock.patch.object(lists, "_FEWEST", 64),
        mock.patch("nearlabel.search._FEWEST_FEATURES", 1),
        mock.patch.multiple(plans, **few),
    ):
        yield


@pytest.fixture
def copies_listed():
    """Lists that hold all rows, equal ones too."""
    with mock.patch("nearlabel.search.exact.equal_rows.equal_rows", return_value=None):
        yield
