"""Which packages reproduce the published numbers? Needs the data sets in the data folder."""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np
from measuring import printed, report
from sklearn.preprocessing import MinMaxScaler
from skmultilearn.adapt import MLkNN as OtherMLkNN

import nearlabel as nl

QUESTION = "ML-kNN on the official splits: published and measured"
METRICS = ("hamming_loss", "one_error", "coverage", "ranking_loss", "average_precision")
YAHOO = (
    *("arts", "business", "computers", "education", "entertainment", "health"),
    *("recreation", "reference", "science", "social", "society"),
)


def split(name: str, *, scale: bool = False) -> tuple[Any, Any, Any, Any]:
    """Training and test rows, optionally scaled to [0, 1] by the training rows."""
    data = nl.datasets.load(name)
    assert data.train is not None
    seen, new = data.X[data.train], data.X[~data.train]
    if scale:
        scaler = MinMaxScaler().fit(seen)
        seen, new = scaler.transform(seen), scaler.transform(new)
    return seen, data.Y[data.train], new, data.Y[~data.train]


def ours(name: str, k: int, convention: str, *, scale: bool = False, s: float = 1.0) -> list[float]:
    seen, labels, new, truth = split(name, scale=scale)
    model = nl.MLkNN(n_neighbors=k, smoothing=s).fit(seen, labels)
    found = nl.metrics.evaluate(truth, model.label_scores(new), model.predict(new), convention)
    return [found[metric] for metric in METRICS]


def other(
    name: str, k: int, convention: str, *, scale: bool = False, ignore: int = 0
) -> list[float]:
    seen, labels, new, truth = split(name, scale=scale)
    model = OtherMLkNN(k=k, s=1.0, ignore_first_neighbours=ignore).fit(seen, labels.toarray())
    scores = np.asarray(model.predict_proba(new).toarray())
    found = nl.metrics.evaluate(truth, scores, model.predict(new).toarray(), convention)
    return [found[metric] for metric in METRICS]


def published(paper: str, dataset: str, algorithm: str, **parameters: Any) -> list[float | None]:
    found = printed(paper, dataset, algorithm, **parameters)
    return [found.get(metric) for metric in METRICS]


def row(data: str, setting: str, who: str, values: Any) -> dict[str, Any]:
    shown = [None if value is None else round(float(value), 4) for value in values]
    return {"data": data, "setting": setting, "who": who, **dict(zip(METRICS, shown, strict=True))}


def main() -> None:
    warnings.simplefilter("ignore")
    try:
        nl.datasets.load("yeast")
    except FileNotFoundError as error:
        sys.exit(f"skipped: {error}")
    yeast = "raw features, k = 7, convention lamda"
    emotions = "min-max, k = 8, convention mulan"
    yahoo = "mean of 11 sets, raw, k = 10, convention lamda"
    ng, skipping = "scikit-multilearn-ng", "scikit-multilearn-ng, ignore_first_neighbours=1"
    birds = "min-max, k = 2, convention "
    means = np.mean([ours(f"yahoo_{name}", 10, "lamda") for name in YAHOO], axis=0)
    rows = [
        row("yeast", yeast, "published", published("zhang-2005", "yeast", "ML-kNN", k=7)),
        row("yeast", yeast, "nearlabel, smoothing 1", ours("yeast", 7, "lamda")),
        row("yeast", yeast, "nearlabel, smoothing 2", ours("yeast", 7, "lamda", s=2)),
        row("yeast", yeast, ng, other("yeast", 7, "lamda")),
        row("yeast", yeast, skipping, other("yeast", 7, "lamda", ignore=1)),
        row("emotions", emotions, "published", published("zhang-2017", "emotions", "ML-kNN")),
        row("emotions", emotions, "nearlabel", ours("emotions", 8, "mulan", scale=True)),
        row("emotions", emotions, ng, other("emotions", 8, "mulan", scale=True)),
        row("emotions", emotions, skipping, other("emotions", 8, "mulan", scale=True, ignore=1)),
        row("yahoo", yahoo, "published", published("zhang-2007", "yahoo_average", "ML-KNN")),
        row("yahoo", yahoo, "nearlabel", means),
        *(
            row("birds", birds + name, "nearlabel", ours("birds", 2, name, scale=True))
            for name in ("paper", "lamda", "mulan")
        ),
    ]
    report(QUESTION, rows, peers=("scikit-multilearn-ng",))


if __name__ == "__main__":
    main()
