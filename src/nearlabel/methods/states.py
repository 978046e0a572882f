"""States of a model: readers are not disturbed by changes."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cached_property, wraps
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

_Parameters = ParamSpec("_Parameters")
_Answer = TypeVar("_Answer")


def of_one_state(
    answer: Callable[Concatenate[Any, _Parameters], _Answer],
) -> Callable[Concatenate[Any, _Parameters], _Answer]:
    """Let a method of a model read one state of it from beginning to end.

    A change makes a new state that replaces the old one atomically. So readers neither wait for a
    change nor see a partial one.
    """

    @wraps(answer)
    def answered(self: Any, *args: _Parameters.args, **kwargs: _Parameters.kwargs) -> _Answer:
        state = state_of(self)
        if vars(state).get("_is_outdated"):
            warnings.warn(
                f"the training rows were changed, so {type(self).__name__} learns again before it "
                "predicts; make several changes at once, or call refresh() when there is time",
                UserWarning,
                stacklevel=2,
            )
            state = self._caught_up()  # not a later state, which may have to learn again, too
        return answer(state, *args, **kwargs)

    return cast(Callable[Concatenate[Any, _Parameters], _Answer], answered)


def state_of(model: Any) -> Any:
    """The current state of a model."""
    state = object.__new__(type(model))
    state.__dict__ = vars(model)
    return state


def next_state(model: Any) -> Any:
    """A copy of a model to be changed, without cached values."""
    state = object.__new__(type(model))
    computed = computed_names(type(model))
    known = vars(model).copy()  # atomic: a reader may cache something meanwhile
    state.__dict__ = {name: value for name, value in known.items() if name not in computed}
    return state


def computed_names(kind: type[Any]) -> frozenset[str]:
    """Attributes of a class that are computed on first access."""
    return frozenset(
        name
        for one in kind.__mro__
        for name, value in vars(one).items()
        if isinstance(value, cached_property)
    )
