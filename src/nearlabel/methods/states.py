"""States of a model: who reads one is not disturbed by who changes it."""

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

    A change makes a new state and puts it in the place of the old one, in one step. So whoever
    reads neither waits for a change nor sees half of one.
    """

    @wraps(answer)
    def answered(self: Any, *args: _Parameters.args, **kwargs: _Parameters.kwargs) -> _Answer:
        state = state_of(self)
        if vars(state).get("_is_outdated"):
            warnings.warn(
                f"the training rows were changed, so {type(self).__name__} learns again before it "
                "answers; make several changes at once, or call refresh() when there is time",
                UserWarning,
                stacklevel=2,
            )
            state = self._caught_up()  # not a later one, which may have to learn again, too
        return answer(state, *args, **kwargs)

    return cast(Callable[Concatenate[Any, _Parameters], _Answer], answered)


def state_of(model: Any) -> Any:
    """The model as it is now."""
    state = object.__new__(type(model))
    state.__dict__ = vars(model)
    return state


def next_state(model: Any) -> Any:
    """A copy of a model that a change is made to; nothing is known of what was computed before."""
    state = object.__new__(type(model))
    computed = computed_names(type(model))
    known = vars(model).copy()  # in one step: a reader may compute something meanwhile
    state.__dict__ = {name: value for name, value in known.items() if name not in computed}
    return state


def computed_names(kind: type[Any]) -> frozenset[str]:
    """Attributes of a class that are computed when they are first asked for."""
    return frozenset(
        name
        for one in kind.__mro__
        for name, value in vars(one).items()
        if isinstance(value, cached_property)
    )
