"""Wrappers around a method, which forward every hook that they do not define."""

from __future__ import annotations

from abc import update_abstractmethods
from operator import attrgetter
from typing import Any, TypeVar

from nearlabel.methods.base import HOOKS, NeighborClassifier

_PARAMETERS = ("n_neighbors", "metric", "search", "n_jobs", "needs")
_Kind = TypeVar("_Kind", bound=type[NeighborClassifier])


def forwards_hooks(kind: _Kind) -> _Kind:
    """Let a class forward what it does not define to the method that it wraps.

    The method is the attribute `estimator`, and once fitted `estimator_`. Its search parameters and
    needs are forwarded, too.
    """
    for name in (*HOOKS, "_voters"):
        if name not in vars(kind):
            setattr(kind, name, _forwarded(name))
    for name in _PARAMETERS:
        setattr(kind, name, property(attrgetter(f"estimator.{name}")))
    update_abstractmethods(kind)
    return kind


def wrapped(model: Any) -> Any:
    """The method of a wrapper: the fitted one if there is one."""
    return vars(model).get("estimator_", model.estimator)


def _forwarded(name: str) -> Any:
    def hook(self: Any, *args: Any) -> Any:
        return getattr(wrapped(self), name)(*args)

    return hook
