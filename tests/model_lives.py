"""Random histories of a model: changes of all kinds, and the expected rows after them."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.neighbors import KNeighborsTransformer
from sklearn.preprocessing import MinMaxScaler

import nearlabel as nl
from nearlabel.methods.fitted_model import state_of

FEATURES, MOST_LABELS = 2, 5
METHODS: dict[str, Callable[..., Any]] = {
    "mlknn": lambda k, **how: nl.MLkNN(k, **how),
    "mlknn, s=0": lambda k, **how: nl.MLkNN(k, smoothing=0, **how),
    "mlknn, even counts": lambda k, **how: nl.MLkNN(k, counts="even", **how),
    "lamlknn": lambda k, **how: nl.LAMLkNN(k, n_clusters=2, random_state=0, **how),
    "dmlknn": lambda k, **how: nl.DMLkNN(k, tolerance=1, **how),
    "brknn": lambda k, **how: nl.BRkNN(k, weights="distance", fill="top", **how),
    "mallowsknn": lambda k, **how: nl.MallowskNN(k, **how),
    "mlcwknn": lambda k, **how: nl.MLCWkNN(k, **how),
    "positiveknn": lambda k, **how: nl.PositivekNN(k, random_state=0, **how),
    "positiveknn, all rows": lambda _, **how: nl.PositivekNN(None, random_state=0, **how),
    "iblr": lambda k, **how: nl.IBLR(k, ridge=1.0, **how),
    "balancedknn": lambda k, metric, n_jobs, **_: nl.BalancedkNN(k, metric=metric, n_jobs=n_jobs),
    "thresholds": lambda k, **how: nl.LabelThresholds(nl.MLkNN(k, **how), min_rows=1),
    "thresholds of dmlknn": lambda k, **how: nl.LabelThresholds(nl.DMLkNN(k, **how), min_rows=1),
}


def weighted_steps(a: Any, b: Any) -> float:
    """A metric of a user."""
    return float(np.abs(a - b) @ np.arange(1, len(a) + 1))


def by_brute_force(X: Any, queries: Any, k: int) -> Any:
    """A search of a user; ties are broken by row."""
    X = X.toarray() if sparse.issparse(X) else X
    queries = X if queries is None else queries
    queries = queries.toarray() if sparse.issparse(queries) else queries
    far = cdist(queries, X, "cityblock")
    near = np.argsort(far, axis=1, kind="stable")[:, :k]
    return near, np.take_along_axis(far, near, axis=1)


class AllRows(KNeighborsTransformer):  # type: ignore[misc]
    """A transformer of scikit-learn that returns all rows, so that no ties are lost."""

    def fit(self, X: Any, y: Any = None) -> Any:
        self.n_neighbors = X.shape[0] - 1
        return super().fit(X, y)


METRICS = ["euclidean", "euclidean", "manhattan", "chebyshev", "cosine", weighted_steps]
SEARCHES = ["auto", "exact", "approximate", nl.InvertedLists(), by_brute_force]
SEARCHES += [AllRows(n_neighbors=99, algorithm="kd_tree", metric="manhattan")]
VECTORS = ["dense", "csr", "float32", "pipeline"]
LABELS = ["matrix", "csr", "tags", "frame", "classes"]
IDS = [None, "numbers", "names"]
STEPS = ["add", "add", "add", "forget", "forget", "relabel", "strip", "shrink", "journal", "load"]
STEPS += ["mmap", "pickle", "copy", "compact", "refresh", "search", "settings", "snapshot"]


class Life:
    """A model, and its rows in the order of their arrival.

    Parameters
    ----------
    name : a key of METHODS
    seed : int
        Of all random choices.
    folder : path of a folder for files
    """

    def __init__(self, name: str, seed: int, folder: Path) -> None:
        self.random = random = np.random.default_rng(seed)
        self.path = Path(folder) / "life.model"
        self.metric, self.search = self.one_of(METRICS), self.one_of(SEARCHES)
        if callable(self.search) or hasattr(self.search, "fit"):
            self.metric = "manhattan"  # the distance of `retrieve`
        self.vectors, self.labels = self.one_of(VECTORS), self.one_of(LABELS)
        if self.vectors == "csr" and isinstance(self.search, AllRows):  # its tree contains numbers
            self.search = by_brute_force
        self.id_form = self.one_of(IDS)
        self.can_be_saved = not callable(self.metric) and isinstance(
            self.search, str | nl.InvertedLists
        )
        self.k = int(random.integers(1, 5))
        how = {"metric": self.metric, "search": self.search, "n_jobs": self.one_of([None, None, 2])}
        self.made = METHODS[name](self.k, **how)
        self.X: list[Any] = []
        self.Y: list[Any] = []
        self.ids: list[Any] = []
        self.next_id, self.given = 0, 1000
        self.q = 1 if self.labels == "classes" else 3
        n = int(random.integers(4, 20))
        self.scaler: Any = None
        model = clone(self.made)
        X, Y = self.new_vectors(n), self.new_labels(n)
        if self.labels == "classes":
            Y[:2, 0] = 0, 1
        if self.vectors == "pipeline":
            model = nl.make_pipeline(MinMaxScaler(), model)
            self.scaler = MinMaxScaler().fit(X)
        ids = self.new_ids(n)
        names = {"label_names": self.names} if self.labels == "tags" else {}
        self.model = model.fit(self.in_form(X), self.in_label_form(Y), ids=ids, **names)
        self.note(X, Y, ids)
        self.snapshots: list[Any] = []
        self.log: list[str] = [repr(model), self.vectors, self.labels, str(self.id_form)]
        self.is_refreshed = False

    # What the rows are like.

    def one_of(self, choices: Any) -> Any:
        return choices[int(self.random.integers(len(choices)))]

    @property
    def names(self) -> list[str]:
        return [f"label {'zyxwv'[column]}" for column in range(self.q)]

    @property
    def learner(self) -> Any:
        return self.model[-1] if self.vectors == "pipeline" else self.model

    def new_vectors(self, n: int) -> Any:
        """Few whole numbers: rows that are equal, and at equal distances, are the rule."""
        X = self.random.integers(-3, 4, (n, FEATURES)).astype(float)
        if self.vectors != "csr" or self.metric == "cosine":
            X += 0.5  # cosine has no direction for zeros
        if self.vectors == "float32" and self.X and self.random.random() < 0.5:
            X += 0.1  # not representable in 32 bits
        return X

    def in_form(self, X: Any) -> Any:
        if self.vectors == "csr":
            return sparse.csr_array(X)
        is_small = self.vectors == "float32" and np.array_equal(X.astype(np.float32), X)
        return X.astype(np.float32) if is_small else X

    def new_labels(self, n: int) -> Any:
        return (self.random.random((n, self.q)) < 0.4).astype(np.int8)

    def in_label_form(self, Y: Any) -> Any:
        if self.labels == "csr":
            return sparse.csr_array(Y)
        if self.labels == "tags":
            return [[self.names[column] for column in np.flatnonzero(y)] for y in Y]
        if self.labels == "frame":
            frame = pd.DataFrame(Y, columns=self.names)
            if not self.X:
                return frame
            order = self.random.permutation(self.q)
            frame = frame.iloc[:, order]
            return frame.loc[:, frame.any()] if frame.any().any() else frame
        if self.labels == "classes":
            return np.where(Y[:, 0] == 1, "yes", "no")
        return Y

    def new_ids(self, n: int) -> Any:
        if self.id_form is None:
            return None
        self.given += n
        numbers = self.given + self.random.permutation(n) - n
        if self.id_form == "numbers":
            return numbers.tolist()
        return [f"row {'o' * (one % 9)} {one}" for one in numbers]

    def note(self, X: Any, Y: Any, ids: Any) -> None:
        self.widen(Y.shape[1])
        self.X += [*X]
        self.Y += [*Y]
        self.ids += range(self.next_id, self.next_id + len(X)) if ids is None else ids
        self.next_id += len(X)

    def widen(self, q: int) -> None:
        self.Y = [np.pad(y, (0, q - len(y))) for y in self.Y]

    def more_labels(self) -> None:
        """Sometimes a new label is added, which may have no rows yet."""
        if self.labels != "classes" and self.random.random() < 0.25:
            self.q = min(MOST_LABELS, self.q + 1)

    # What happens to them.

    def step(self, what: str) -> None:
        """One thing of STEPS."""
        self.log.append(what)
        self.is_refreshed = what == "refresh"
        getattr(self, f"_{what}")()

    def _add(self) -> None:
        n = int(self.random.integers(1, 5))
        self.more_labels()
        X, Y, ids = self.new_vectors(n), self.new_labels(n), self.new_ids(n)
        if self.labels in ("tags", "frame"):
            self.name_all(Y)
        self.model.partial_fit(self.in_form(X), self.in_label_form(Y), ids=ids)
        self.note(X, Y, ids)

    def name_all(self, Y: Any) -> None:
        """Give a new label to a row, since its name is not known otherwise."""
        if self.q > len(self.learner.label_names_):
            Y[0, -1] = 1

    def _forget(self, left: int = 2) -> None:
        n = len(self.ids)
        if n > left:
            size = int(self.random.integers(1, min(4, n - left) + 1))
            self.drop(self.random.permutation(n)[:size])

    def _shrink(self) -> None:
        """Keep just enough rows for the neighbors of queries, or two."""
        left = int(self.one_of([2, self.k + 1, self.k + 2, self.k + 5]))
        if len(self.ids) > max(left, 2):
            self.drop(self.random.permutation(len(self.ids))[max(left, 2) :])

    def drop(self, rows: Any) -> None:
        gone = [self.ids[row] for row in rows]
        self.model.forget(gone if len(gone) > 1 or self.random.random() < 0.5 else gone[0])
        kept = [row for row in range(len(self.ids)) if row not in rows]
        self.X, self.Y, self.ids = ([p[i] for i in kept] for p in (self.X, self.Y, self.ids))

    def _relabel(self) -> None:
        size = int(self.random.integers(1, min(4, len(self.ids)) + 1))
        rows = self.random.permutation(len(self.ids))[:size]
        self.more_labels()
        Y = self.new_labels(size)
        if self.labels in ("tags", "frame"):
            self.name_all(Y)
        self.replace(rows, Y)

    def _strip(self) -> None:
        """A label vanishes from all rows."""
        column = int(self.random.integers(self.q))
        rows = [row for row, y in enumerate(self.Y) if column < len(y) and y[column]]
        if rows:
            Y = np.array([np.pad(self.Y[row], (0, self.q - len(self.Y[row]))) for row in rows])
            Y[:, column] = 0
            self.replace(np.array(rows), Y)

    def replace(self, rows: Any, Y: Any) -> None:
        self.model.relabel([self.ids[row] for row in rows], self.in_label_form(Y))
        self.widen(Y.shape[1])
        for row, y in zip(rows, Y, strict=True):
            self.Y[row] = y

    def _file(self, **how: Any) -> None:
        if not self.can_be_saved:
            return self._pickle()
        self.let_go()
        nl.save(self.model, self.path)
        self.model = nl.load(self.path, **how)
        return None

    def let_go(self) -> None:
        """Read the model again with all changes of its journal, if it has one, and close that."""
        if "_journal" in vars(self.learner):
            self.model.close()
            is_mapped = bool(self.random.random() < 0.5)
            self.model = nl.load(self.path, mmap=is_mapped)

    def _load(self) -> None:
        self._file()

    def _mmap(self) -> None:
        self._file(mmap=True)

    def _journal(self) -> None:
        self._file(mmap=bool(self.random.random() < 0.5), journal=True)

    def _pickle(self) -> None:
        self.let_go()
        self.model = pickle.loads(pickle.dumps(self.model))

    def _copy(self) -> None:
        self.let_go()
        self.model = copy.deepcopy(self.model)

    def _compact(self) -> None:
        self.model.compact()

    def _refresh(self) -> None:
        self.model.refresh()

    def _search(self) -> None:
        if self.can_be_saved:
            self.learner.search_with(self.one_of(["auto", "exact", "approximate"]))

    def _settings(self) -> None:
        """What is set after a fit is for the next fit."""
        own = self.learner
        self.is_balanced = isinstance(own, nl.BalancedkNN)
        if not isinstance(own, nl.LabelThresholds):
            own.set_params(**{"per_class" if self.is_balanced else "n_neighbors": self.k + 1})
            if "smoothing" in own.get_params():
                own.set_params(smoothing=3.0)

    def _snapshot(self) -> None:
        state, queries = state_of(self.learner), self.new_vectors(2)
        self.snapshots.append((state, queries, state.label_scores(queries).toarray()))

    # What it should be.

    def arrays(self) -> Any:
        X = np.array(self.X)
        return X if self.scaler is None else self.scaler.transform(X), np.array(self.Y)

    def fresh(self, *, keeps: bool = True) -> Any:
        """The method fitted to all rows; with what only `refresh` learns, if it `keeps` that."""
        made, own = clone(self.made), self.learner
        if keeps and isinstance(made, nl.LAMLkNN):
            made.set_params(cluster_centers=own.cluster_centers_)
        if keeps and isinstance(made, nl.PositivekNN):
            made.set_params(rate=own.rate_)
        X, Y = self.arrays()
        X = X.astype(own.items_.vectors.dtype)  # k-means in float32 may number clusters differently
        X = sparse.csr_array(X) if self.vectors == "csr" else X
        return made.fit(X, Y, ids=self.ids)
