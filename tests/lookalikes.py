"""Small synthetic data sets under the names of real ones, so that experiments can run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from nearlabel.datasets import make_local_labels, save
from nearlabel.experiments.papers import table_experiments

ROWS, TRAINING_ROWS = 240, 160  # an experiment asks for 150 neighbors
LABELS = np.array(["Beach", "Sunset", "FallFoliage", "Field", "Mountain", "Urban"])  # of scene
FEATURES = np.array(["f1", "f2", "f3", "f4", "location"])  # birds has a nominal one


def write_lookalikes(folder: Path, *names: str) -> None:
    """Write data sets with everything that the experiments need."""
    for seed, name in enumerate(names):
        made = make_local_labels(ROWS, len(FEATURES), len(LABELS), random_state=seed)
        X = made.X.copy()
        X[:, -1] = np.arange(ROWS) % 3
        data = replace(made, X=X, label_names=LABELS, feature_names=FEATURES)
        train = np.arange(ROWS) < TRAINING_ROWS
        save(replace(data, train=train), folder / f"{name}.npz")


def make_baselines_quick(monkeypatch):
    """Small baselines, for tests of which experiments are run and how they are shown."""
    model = table_experiments._model

    def quick(name, parameters, n_jobs):
        made = model(name, parameters, n_jobs)
        small = {"n_rounds": 3, "tol": 0.5, "min_leaf": 60}
        return made.set_params(**{key: small[key] for key in small.keys() & parameters.keys()})

    monkeypatch.setattr(table_experiments, "_model", quick)
