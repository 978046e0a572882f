import sys

import pytest

from nearlabel.common.extras import extra_module


def test_what_is_installed():
    assert extra_module("json", "x needs json", "x").loads("[1]") == [1]


def test_what_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "json", None)
    with pytest.raises(ImportError, match=r"^x needs JSON: pip install 'nearlabel\[y\]'$"):
        extra_module("json", "x needs JSON", "y")


def test_broken_archives(monkeypatch, tmp_path):
    (tmp_path / "broken_for_a_test.py").write_text("raise ImportError('no libfoo')")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ImportError, match=r"needs it \(no libfoo\): pip install"):
        extra_module("broken_for_a_test", "x needs it", "y")
