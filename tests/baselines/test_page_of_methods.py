"""docs/methods/README.md: its links and its code."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

PAGE = Path(__file__).parents[2] / "docs/methods/README.md"


def test_links_lead_somewhere():
    links = re.findall(r"\]\(([\w./]+)\)", PAGE.read_text(encoding="utf-8"))
    assert len(links) > 3
    assert [link for link in links if not (PAGE.parent / link).exists()] == []


def test_cart_over_scikit_learn():
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    found = {}
    exec(compile(code, str(PAGE), "exec"), found)
    assert found["scores"].shape == (100, 6)
    # Better than chance, and with the ties that the page mentions.
    assert found["nl"].metrics.ranking_loss(found["data"].Y[200:], found["scores"]) < 0.4
    assert np.isin(found["scores"], [0, 1]).mean() > 0.5
