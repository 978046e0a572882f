"""Forwarding: a pipeline or a search has the methods of the model that it holds.

Such an estimator inherits `ForwardedAnswers`, and `ForwardedChanges` if its training items can
change, and says in `_delegate` which model that is. As in scikit-learn, a forwarded method exists
if the model has it; if not, accessing it is an AttributeError.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, Self, TypeVar

from sklearn.utils.metaestimators import available_if

from nearlabel.common.arrays import Csr, Floats
from nearlabel.common.progress import Progress
from nearlabel.labels.ranked_labels import RankedLabels
from nearlabel.labels.scores import LabelScores
from nearlabel.methods.base import NeighborClassifier
from nearlabel.methods.retrieval import LabelGroup
from nearlabel.methods.verification import Verification

_Method = TypeVar("_Method", bound=Callable[..., object])


def if_delegate_has(name: str) -> Callable[[_Method], _Method]:
    """Let a method exist only if the delegate has an attribute."""
    decorator: Callable[[_Method], _Method]
    decorator = available_if(lambda forwarding: hasattr(forwarding._delegate(), name))
    return decorator


class Forwarding:
    """An estimator that holds a model."""

    @abstractmethod
    def _delegate(self) -> NeighborClassifier:
        """The fitted model, or before `fit` the one to be fitted: it raises a NotFittedError."""

    def _forwarded_items(self, X: object) -> Any:
        """Items as the model takes them."""
        return X

    def _forwarded_item(self, x: object) -> Any:
        """An item, or several, as `explain` of the model takes them."""
        return self._forwarded_items(x)


class ForwardedAnswers(Forwarding):
    """The answers of the model."""

    @if_delegate_has("predict")
    def predict(self, X: object) -> Any:
        """The label sets of rows, in the form of the y given to fit."""
        return self._delegate().predict(self._forwarded_items(X))

    @if_delegate_has("predict_proba")
    def predict_proba(self, X: object) -> Floats:
        """Probability of each label for each row, on the side of 1/2 that `predict` is on."""
        return self._delegate().predict_proba(self._forwarded_items(X))

    @if_delegate_has("label_scores")
    def label_scores(self, X: object, *, progress: Progress | None = None) -> LabelScores:
        """Score every label for each row: what labels are ranked by."""
        return self._delegate().label_scores(self._forwarded_items(X), progress=progress)

    @if_delegate_has("left_out_scores")
    def left_out_scores(self, rows: Any = None) -> LabelScores:
        """Score every label for training rows, each as if it were new."""
        return self._delegate().left_out_scores(rows)

    @if_delegate_has("rank")
    def rank(self, X: object, top: int = 10, *, progress: Progress | None = None) -> RankedLabels:
        """Rank the labels of each row."""
        return self._delegate().rank(self._forwarded_items(X), top, progress=progress)

    @if_delegate_has("retrieve")
    def retrieve(self, X: object, top: int = 5, per_label: int = 8) -> list[list[LabelGroup]]:
        """For each of the best labels of each row, find the nearest items that carry it."""
        return self._delegate().retrieve(self._forwarded_items(X), top, per_label)

    @if_delegate_has("explain")
    def explain(self, x: object, top: int = 5, *, labels: Any = None) -> Any:
        """Explain why an item, or each of several, gets its labels."""
        return self._delegate().explain(self._forwarded_item(x), top, labels=labels)

    @if_delegate_has("kneighbors")
    def kneighbors(
        self, X: object = None, n_neighbors: int | None = None, return_distance: bool = True
    ) -> Any:
        """Find the nearest training rows."""
        X = None if X is None else self._forwarded_items(X)
        return self._delegate().kneighbors(X, n_neighbors, return_distance)

    @if_delegate_has("label_matrix")
    def label_matrix(self, y: object) -> Csr:
        """Labels in any form that `fit` accepts, as a 0/1 matrix."""
        return self._delegate().label_matrix(y)


class ForwardedChanges(Forwarding):
    """The changes of the model's training items; what transforms them is not fitted again."""

    @if_delegate_has("partial_fit")
    def partial_fit(
        self, X: object, y: object, classes: Any = None, ids: Any = None, **options: Any
    ) -> Self:
        """Add training items, and learn from them immediately."""
        self._delegate().partial_fit(self._forwarded_items(X), y, classes, ids, **options)
        return self

    @if_delegate_has("forget")
    def forget(self, ids: Any, *, progress: Progress | None = None) -> Self:
        """Remove training items from the model, and from everything that it has learned."""
        self._delegate().forget(ids, progress=progress)
        return self

    @if_delegate_has("relabel")
    def relabel(self, ids: Any, y: object, **options: Any) -> Self:
        """Give training items other labels, and learn from them immediately."""
        self._delegate().relabel(ids, y, **options)
        return self

    @if_delegate_has("refresh")
    def refresh(self, *, progress: Progress | None = None) -> Self:
        """Learn everything again, including what changes do not update."""
        self._delegate().refresh(progress=progress)
        return self

    @if_delegate_has("compact")
    def compact(self) -> Self:
        """Remove the gaps left by forgotten items, and rebuild the search index."""
        self._delegate().compact()
        return self

    @if_delegate_has("verify")
    def verify(self, *, progress: Progress | None = None) -> Verification:
        """Compute everything again from the items and their labels, and compare."""
        return self._delegate().verify(progress=progress)

    @if_delegate_has("close")
    def close(self) -> None:
        """Release the file that the model was loaded from."""
        self._delegate().close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def ids_(self) -> Any:
        """The ids of the training items."""
        return self._delegate().ids_

    @property
    def history_(self) -> Any:
        """How many items were added, forgotten and relabelled since fit."""
        return self._delegate().history_
