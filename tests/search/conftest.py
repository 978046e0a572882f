from __future__ import annotations

from unittest import mock

import pytest

from nearlabel.search import lists


@pytest.fixture(scope="module")
def small_lists():
    """Lists for few rows already, whose recall is measured on few, and a pass where it helps."""
    with mock.patch.multiple(lists, _FEWEST=64, _ROWS_TUNED=16, ROWS_MEASURED=32, _PASS_COST=0.01):
        yield
