"""What the command line asks of models and the library has no public name for yet.

To be replaced one by one: `model.check_parameters()`, `model.search_with(search)` and
`model.set_params(n_jobs=…)`.
"""

from __future__ import annotations

from typing import Any


def check_parameters(model: Any) -> None:
    """Refuse parameters out of range, without fitting."""
    model._check_parameters()


def search_with(model: Any, search: Any) -> None:
    """Let a fitted model search in another way from now on."""
    model._search_by(search)


def use_threads(model: Any, n_jobs: int) -> None:
    """Let a fitted model answer with so many threads from now on."""
    model._use_threads(n_jobs)
