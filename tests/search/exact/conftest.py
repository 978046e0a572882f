from unittest import mock

import pytest

from nearlabel.search.exact import index


@pytest.fixture(scope="package", autouse=True)
def bounds_for_few_rows():
    """Search few rows like many, so that small data test it; see test_core_rows.py."""
    with mock.patch.object(index, "_FEW", 0):
        yield
