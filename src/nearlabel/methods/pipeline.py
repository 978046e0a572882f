"""A scikit-learn pipeline that also has nearlabel's additional methods."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import signature
from typing import Any, Self

from sklearn import get_config
from sklearn.pipeline import Pipeline as SklearnPipeline
from sklearn.pipeline import make_pipeline as sklearn_pipeline
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from nearlabel.common.arrays import Csr
from nearlabel.common.progress import Progress
from nearlabel.labels.ranked_labels import RankedLabels
from nearlabel.labels.scores import LabelScores
from nearlabel.methods.data_units import DataUnits
from nearlabel.methods.explanations import as_one_row
from nearlabel.methods.retrieval import LabelGroup
from nearlabel.methods.verification import Verification


def _if_the_method_has(name: str) -> Any:
    """Give a pipeline a method only if its last step has it, as in scikit-learn."""
    return available_if(lambda pipeline: hasattr(pipeline.steps[-1][1], name))


class Pipeline(SklearnPipeline):
    """scikit-learn's Pipeline, with the methods that nearlabel's estimators add to `predict`.

    The last step is a nearlabel estimator; the steps before it transform the items first, as in
    `predict`. ``nl.Pipeline(fitted.steps)`` adds these methods to a fitted scikit-learn pipeline.

    Parameters
    ----------
    steps : list of (str, estimator)
        As in scikit-learn; so are the other parameters.

    See Also
    --------
    make_pipeline : The same without names for the steps.

    Examples
    --------
    >>> import nearlabel as nl
    >>> from sklearn.feature_extraction.text import TfidfVectorizer
    >>> texts = ["sea and sand", "the sea at night", "a city at night", "city lights"]
    >>> tags = [[1, 0], [1, 1], [0, 1], [0, 1]]
    >>> model = nl.make_pipeline(TfidfVectorizer(), nl.BRkNN(2))
    >>> model.fit(texts, tags, label_names=["beach", "evening"])
    Pipeline(steps=[('tfidfvectorizer', TfidfVectorizer()),
                    ('brknn', BRkNN(n_neighbors=2))])
    >>> model.rank(["sand by the sea"]).names.tolist()
    [['beach', 'evening']]
    """

    def fit(self, X: Any, y: Any = None, **params: Any) -> Self:
        """Fit the transformers one after the other, and the method to their output.

        Parameters
        ----------
        X : items in the form that the first step accepts
        y : labels in any form that the method's `fit` accepts
        **params
            Keywords of the method's `fit`, such as `label_names` and `ids`; those of another step
            with its name, ``step__keyword``, as in scikit-learn. With metadata routing enabled, the
            steps request what they need.

        Returns
        -------
        self
        """
        if not get_config()["enable_metadata_routing"] and hasattr(self._method(), "fit"):
            own = signature(self._method().fit).parameters.values()
            keywords = {one.name for one in own if one.kind is one.KEYWORD_ONLY}
            last = self.steps[-1][0]
            params = {f"{last}__{key}" if key in keywords else key: params[key] for key in params}
        super().fit(X, y, **params)
        return self

    @_if_the_method_has("partial_fit")
    def partial_fit(self, X: Any, y: Any, classes: Any = None, ids: Any = None, **how: Any) -> Self:
        """Add training items, as the method does; the transformers are not fitted again.

        Parameters
        ----------
        X : items in the form that the first step accepts
        y, classes, ids, **how
            As in the method's `partial_fit`.

        Returns
        -------
        self
        """
        self._method().partial_fit(self._transformed(X), y, classes, ids, **how)
        return self

    @_if_the_method_has("forget")
    def forget(self, ids: Any, *, progress: Progress | None = None) -> Self:
        """Remove training items from the model, as the method does."""
        self._method().forget(ids, progress=progress)
        return self

    @_if_the_method_has("relabel")
    def relabel(self, ids: Any, y: Any, **how: Any) -> Self:
        """Give training items other labels, as the method does."""
        self._method().relabel(ids, y, **how)
        return self

    @_if_the_method_has("refresh")
    def refresh(self, *, progress: Progress | None = None) -> Self:
        """Learn everything again except the transformers, which are not fitted again."""
        self._method().refresh(progress=progress)
        return self

    @_if_the_method_has("compact")
    def compact(self) -> Self:
        """Remove the gaps left by forgotten items, as the method does."""
        self._method().compact()
        return self

    @_if_the_method_has("verify")
    def verify(self, *, progress: Progress | None = None) -> Verification:
        """Compute everything again from the transformed items and their labels, and compare."""
        found: Verification = self._method().verify(progress=progress)
        return found

    @_if_the_method_has("close")
    def close(self) -> None:
        """Release the file that this pipeline was loaded from, as the method does."""
        self._method().close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def ids_(self) -> Any:
        """The ids of the training items."""
        return self._method().ids_

    @property
    def history_(self) -> Any:
        """How many items were added, forgotten and relabelled since fit."""
        return self._method().history_

    @_if_the_method_has("label_scores")
    def label_scores(self, X: Any, *, progress: Progress | None = None) -> LabelScores:
        """Score every label for each row, as the method does."""
        scores: LabelScores = self._method().label_scores(self._transformed(X), progress=progress)
        return scores

    @_if_the_method_has("rank")
    def rank(self, X: Any, top: int = 10, *, progress: Progress | None = None) -> RankedLabels:
        """Rank the labels of each row, as the method does."""
        ranked: RankedLabels = self._method().rank(self._transformed(X), top, progress=progress)
        return ranked

    @_if_the_method_has("retrieve")
    def retrieve(self, X: Any, top: int = 5, per_label: int = 8) -> list[list[LabelGroup]]:
        """For each of the best labels of each row, find the nearest items with it."""
        found: list[list[LabelGroup]]
        found = self._method().retrieve(self._transformed(X), top, per_label)
        return found

    @_if_the_method_has("explain")
    def explain(self, x: Any, top: int = 5, *, labels: Any = None) -> Any:
        """Explain why an item, or each of several, gets its labels, as the method does.

        Items are in the form that the first step accepts: a string is one item, a list of strings
        has one or several.
        """
        return self._method().explain(self._transformed(self._as_items(x)), top, labels=labels)

    @_if_the_method_has("kneighbors")
    def kneighbors(
        self, X: Any = None, n_neighbors: int | None = None, return_distance: bool = True
    ) -> Any:
        """Find the nearest training rows, as the method does."""
        X = None if X is None else self._transformed(X)
        return self._method().kneighbors(X, n_neighbors, return_distance)

    @_if_the_method_has("tree_text")
    def tree_text(self, label: Any = None) -> str:
        """Print the tree of a label as the method does, with names and cuts of the data.

        Features have the names that scikit-learn gives to what the transformers return. Cuts are in
        the units before `MinMaxScaler`, `StandardScaler`, `MaxAbsScaler` and `RobustScaler`.
        """
        return str(self._tree_in_data_units().tree_text(label))

    @_if_the_method_has("draw_tree")
    def draw_tree(self, label: Any = None) -> Any:
        """Draw the tree as the method does, with names and cuts as in `tree_text`."""
        return self._tree_in_data_units().draw_tree(label)

    def _tree_in_data_units(self) -> Any:
        method = self._method()
        check_is_fitted(method)
        units = DataUnits.before([step for _, step in self.steps[:-1]], method.n_features_in_)
        if hasattr(method, "feature_names_in_"):  # if transformers return DataFrames
            units = units._replace(names=method.feature_names_in_.tolist())
        return method._in_units(units)

    @property
    def label_names_(self) -> Any:
        """Names of the labels."""
        return self._method().label_names_

    @_if_the_method_has("label_matrix")
    def label_matrix(self, y: Any) -> Csr:
        """Labels in any form that `fit` accepts, as a 0/1 matrix."""
        matrix: Csr = self._method().label_matrix(y)
        return matrix

    def _as_items(self, x: Any) -> Any:
        """A single item as a collection of one; anything else unchanged."""
        if isinstance(x, str | Mapping):
            return [x]
        # A step for strings or dicts has no number of features: a list of these has several items.
        first = next(step for _, step in self.steps if not _is_skipped(step))
        return as_one_row(x) if hasattr(first, "n_features_in_") else x

    def _method(self) -> Any:
        return self.steps[-1][1]

    def _transformed(self, X: Any) -> Any:
        """Items as transformed for the method."""
        check_is_fitted(self._method())
        for _, step in self.steps[:-1]:
            if not _is_skipped(step):
                X = step.transform(X)
        return X


def _is_skipped(step: Any) -> bool:
    return step is None or (isinstance(step, str) and step == "passthrough")


def make_pipeline(*steps: Any, memory: Any = None, verbose: bool = False) -> Pipeline:
    """Make a `Pipeline` whose steps are named after their classes, as in scikit-learn.

    Parameters
    ----------
    *steps : transformers and, last, a nearlabel estimator
    memory, verbose
        As in scikit-learn.

    Returns
    -------
    Pipeline
    """
    named = sklearn_pipeline(*steps, memory=memory, verbose=verbose)
    return Pipeline(named.steps, memory=memory, verbose=verbose)
