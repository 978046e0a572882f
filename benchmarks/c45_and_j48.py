"""Does the tree learner grow the trees of WEKA's J48?

Needs Java, the package JPype1, and the variable WEKA_JAR with the path of a weka.jar, such as the
one in the source package of python-weka-wrapper3.
"""

from __future__ import annotations

import os
import re
import sys
from importlib import import_module
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np
from measuring import report

from nearlabel.baselines.c45_growing import GrowingData
from nearlabel.baselines.c45_splits import Columns
from nearlabel.baselines.c45tree import C45Nodes, c45_tree
from nearlabel.common.arrays import Array, Floats

QUESTION = (
    "C4.5 compared with J48 of WEKA on synthetic data sets with 6 to 400 rows, 2 to 6 classes, "
    "numeric and nominal features and up to 30 % missing values: equal trees, equal printed texts, "
    "and the largest difference of the class shares of 40 new rows with missing values"
)
PROBLEMS, NEW_ROWS = 1200, 40
WEIGHTS = re.compile(r" \([\d./]+\)")


class Problem(NamedTuple):
    """Rows with classes; `n_values` has the number of values of each nominal feature, else 0."""

    X: Floats
    classes: Array
    n_classes: int
    n_values: Array
    new: Floats
    min_leaf: int
    confidence: float


def made_problem(seed: int) -> Problem:
    random = Random(seed)
    n, d, n_classes = random.randint(6, 400), random.randint(1, 8), random.randint(2, 6)
    n_values = np.array([random.choice((0, 0, 2, 3, 5)) for _ in range(d)])
    decimals, gaps = random.randint(0, 3), random.choice((0.0, 0.0, 0.1, 0.3))
    noise = random.random()

    def value(size: int) -> float:
        if random.random() < gaps:
            return np.nan
        # Not -0.0, which J48 prints with its sign.
        return float(random.randrange(size) if size else round(random.gauss(0, 2), decimals) + 0.0)

    X = np.array([[value(int(size)) for size in n_values] for _ in range(n + NEW_ROWS)])
    pull = np.nan_to_num(X) @ np.array([random.gauss(0, 1) for _ in range(d)])
    order = np.argsort(np.argsort(pull)) * n_classes // len(pull)
    drawn = [
        random.randrange(n_classes) if random.random() < noise else int(one) for one in order[:n]
    ]
    confidence = random.choice((0.05, 0.1, 0.25, 0.25, 0.4))
    min_leaf = random.choice((1, 2, 2, 3, 5, 10))
    return Problem(X[:n], np.array(drawn), n_classes, n_values, X[n:], min_leaf, confidence)


def our_tree(problem: Problem) -> C45Nodes:
    columns = Columns(problem.X, problem.n_values)
    entries = columns.sorted_entries()
    training = GrowingData(
        columns, entries, problem.classes, problem.n_classes, problem.min_leaf, actual_cuts=True
    )
    return c45_tree(training, problem.confidence)


class Weka:
    """J48 in a Java virtual machine of this process."""

    def __init__(self, jar: str) -> None:
        jpype = import_module("jpype")
        jpype.startJVM(classpath=[jar], convertStrings=True)
        self._class = jpype.JClass
        self.version = str(jpype.JClass("weka.core.Version").VERSION)

    def tree(self, problem: Problem) -> tuple[str, Floats]:
        """The text of the tree, and the class shares of the new rows."""
        attributes = self._class("java.util.ArrayList")()
        attribute = self._class("weka.core.Attribute")
        for feature, size in enumerate(problem.n_values):
            name = f"x{feature}"
            attributes.add(attribute(name, self._names(int(size))) if size else attribute(name))
        attributes.add(attribute("class", self._names(problem.n_classes)))
        rows = self._class("weka.core.Instances")("made", attributes, 0)
        rows.setClassIndex(len(problem.n_values))
        for row, of_class in zip(problem.X, problem.classes, strict=True):
            rows.add(self._row([*row, float(of_class)]))
        model = self._class("weka.classifiers.trees.J48")()
        model.setMinNumObj(problem.min_leaf)
        model.setConfidenceFactor(problem.confidence)
        model.buildClassifier(rows)
        shares = []
        for row in problem.new:
            new = self._row([*row, float("nan")])
            new.setDataset(rows)
            shares.append(list(model.distributionForInstance(new)))
        return str(model.toString()), np.array(shares)

    def _names(self, size: int) -> Any:
        names = self._class("java.util.ArrayList")()
        for number in range(size):
            names.add(str(number))
        return names

    def _row(self, values: list[float]) -> Any:
        return self._class("weka.core.DenseInstance")(1.0, [float(value) for value in values])


def compared(weka: Weka) -> dict[str, Any]:
    trees = texts = 0
    difference = 0.0
    for seed in range(PROBLEMS):
        problem = made_problem(seed)
        ours, (text, shares) = our_tree(problem), weka.tree(problem)
        names = [f"x{feature}" for feature in range(len(problem.n_values))]
        lines = ours.text(names, range(problem.n_classes)).strip()
        theirs = text.partition("------------------\n")[2].strip()
        texts += lines == theirs
        trees += WEIGHTS.sub("", lines) == WEIGHTS.sub("", theirs)
        found = ours.scores(Columns(problem.new, problem.n_values), ours.shares())
        difference = max(difference, float(np.abs(found - shares).max()))
    return {
        "weka": weka.version,
        "data_sets": PROBLEMS,
        "equal_trees": trees,
        "equal_texts": texts,
        "greatest_difference_of_shares": float(f"{difference:.1e}"),
    }


def main() -> None:
    jar = os.environ.get("WEKA_JAR", "")
    if not Path(jar).is_file():
        sys.exit("skipped: WEKA_JAR must be the path of a weka.jar")
    try:
        weka = Weka(jar)
    except ImportError as error:
        sys.exit(f"skipped: {error}: pip install JPype1")
    except Exception as error:  # JPype has no exception class for a missing Java
        sys.exit(f"skipped: Java cannot be started: {error}")
    report(QUESTION, [compared(weka)], ("JPype1",))


if __name__ == "__main__":
    main()
