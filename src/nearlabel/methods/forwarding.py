"""Forwarding: a pipeline or a search has the methods of the model that it holds.

Such an estimator inherits `ForwardedAnswers`, and `ForwardedChanges` if its training items can
change, and says in `_delegate` which model that is. As in scikit-learn, a forwarded method exists
if the model has it; if not, accessing it is an AttributeError.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import Any, Concatenate, ParamSpec, Self, TypeVar, cast

from sklearn.utils.metaestimators import available_if

from nearlabel.common.arrays import Array
from nearlabel.methods.base import NeighborClassifier
from nearlabel.methods.fitted_model import History

_Method = TypeVar("_Method", bound=Callable[..., object])
_Parameters = ParamSpec("_Parameters")
_Answer = TypeVar("_Answer")


class Forwarding:
    """An estimator that holds a model."""

    @abstractmethod
    def _delegate(self) -> NeighborClassifier:
        """The fitted model, or before `fit` the one to be fitted: it raises a NotFittedError."""

    def _forwarded_items(self, X: Any) -> Any:
        """Items as the model takes them."""
        return X

    def _forwarded_item(self, x: Any) -> Any:
        """An item, or several, as `explain` of the model takes them."""
        return self._forwarded_items(x)


def if_delegate_has(name: str) -> Callable[[_Method], _Method]:
    """Let a method exist only if the delegate has an attribute."""
    decorator: Callable[[_Method], _Method]
    decorator = available_if(lambda forwarding: hasattr(forwarding._delegate(), name))
    return decorator


def forwarded(
    method: Callable[Concatenate[NeighborClassifier, _Parameters], _Answer],
) -> Callable[Concatenate[Any, _Parameters], _Answer]:
    """A method that calls the one of the delegate, with items in the form in which it takes them.

    What returns the delegate itself returns the estimator that holds it.
    """
    parameters = signature(method)

    @if_delegate_has(method.__name__)
    @wraps(method)
    def call(self: Forwarding, *args: _Parameters.args, **kwargs: _Parameters.kwargs) -> Any:
        delegate, given = self._delegate(), parameters.bind(self, *args, **kwargs).arguments
        given.pop("self")
        for name, transform in (("X", self._forwarded_items), ("x", self._forwarded_item)):
            if given.get(name) is not None:
                given[name] = transform(given[name])
        answer = getattr(delegate, method.__name__)(**given)
        return self if answer is delegate else answer

    return cast(Callable[Concatenate[Any, _Parameters], _Answer], call)


class ForwardedAnswers(Forwarding):
    """The answers of the model."""

    predict = forwarded(NeighborClassifier.predict)
    predict_proba = forwarded(NeighborClassifier.predict_proba)
    label_scores = forwarded(NeighborClassifier.label_scores)
    left_out_scores = forwarded(NeighborClassifier.left_out_scores)
    rank = forwarded(NeighborClassifier.rank)
    retrieve = forwarded(NeighborClassifier.retrieve)
    explain = forwarded(NeighborClassifier.explain)
    kneighbors = forwarded(NeighborClassifier.kneighbors)
    label_matrix = forwarded(NeighborClassifier.label_matrix)


class ForwardedChanges(Forwarding):
    """The changes of the model's training items; what transforms them is not fitted again."""

    partial_fit = forwarded(NeighborClassifier.partial_fit)
    forget = forwarded(NeighborClassifier.forget)
    relabel = forwarded(NeighborClassifier.relabel)
    refresh = forwarded(NeighborClassifier.refresh)
    compact = forwarded(NeighborClassifier.compact)
    verify = forwarded(NeighborClassifier.verify)
    close = forwarded(NeighborClassifier.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def ids_(self) -> Array | None:
        """The ids of the training items."""
        return self._delegate().ids_

    @property
    def history_(self) -> History:
        """How many items were added, forgotten and relabelled since fit."""
        return self._delegate().history_
