"""How fast are model files with large vocabularies written and read, compared with joblib?"""

from __future__ import annotations

import argparse
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from measuring import report, taking_turns
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer

import nearlabel as nl

QUESTION = (
    "Model files of pipelines with a vocabulary, written and read: core-seconds, best of "
    "interleaved repeats; joblib pickles the same pipelines, and executes code when reading"
)
ROWS = 2000


def fitted(vectorizer: Any, words: int) -> Any:
    """A pipeline that learned `words` words from texts in which each occurs twice."""
    places = np.arange(2 * words) % words
    texts = [" ".join(f"word{place}" for place in row) for row in np.array_split(places, ROWS)]
    Y = np.eye(4, dtype=int)[np.arange(ROWS) % 4]
    return nl.make_pipeline(vectorizer, nl.BRkNN(5)).fit(texts, Y)


def file_times(vectorizer: Any, words: int, folder: Path) -> dict[str, Any]:
    """Core-seconds of writing and reading one pipeline."""
    model = fitted(vectorizer, words)
    ours, theirs = folder / "ours", folder / "theirs"
    best = taking_turns(
        {
            "save": partial(nl.save, model, ours),
            "joblib_dump": partial(joblib.dump, model, theirs),
            "load": partial(nl.load, ours),
            "joblib_load": partial(joblib.load, theirs),
        }
    )
    texts = [f"word{place} word{place + 1}" for place in range(20)]
    same = np.array_equal(nl.load(ours).predict_proba(texts), model.predict_proba(texts))
    return {
        "vectorizer": type(vectorizer).__name__,
        "words": words,
        "mib": round(ours.stat().st_size / 2**20, 1),
        "joblib_mib": round(theirs.stat().st_size / 2**20, 1),
        **{name: round(seconds, 3) for name, seconds in best.items()},
        "load_times_joblib": round(best["load"] / best["joblib_load"], 2),
        "same_predictions": bool(same),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--words", type=int, default=1_000_000, help="use fewer to try the script")
    words = parser.parse_args().words
    with tempfile.TemporaryDirectory() as folder:
        rows = [
            file_times(vectorizer, count, Path(folder))
            for vectorizer in (TfidfVectorizer(), CountVectorizer())
            for count in (words // 10, words)
        ]
    report(QUESTION, rows, ("joblib",))


if __name__ == "__main__":
    main()
