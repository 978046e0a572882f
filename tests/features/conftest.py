"""Pictures of the data folder."""

from __future__ import annotations

import csv
import os

import numpy as np
import pytest

import nearlabel as nl


@pytest.fixture(scope="session")
def natural_scenes():
    """Paths of the 2,000 natural scenes and their labels; skips the test where they are absent."""
    for folder in nl.datasets.data_folders():
        for place in (folder / "natural_scenes", folder.parent / "images" / "natural_scenes"):
            if (place / "labels.csv").exists():
                with (place / "labels.csv").open(encoding="utf-8") as file:
                    _, *rows = csv.reader(file)
                paths = [place / "pictures" / row[0] for row in rows]
                return paths, np.array([row[1:] for row in rows], int)
    if os.environ.get("NEARLABEL_REQUIRE_DATA"):
        raise FileNotFoundError("natural_scenes is not in the data folder")
    return pytest.skip("natural_scenes is not in the data folder (set NEARLABEL_DATA)")
