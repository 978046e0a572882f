"""Searches from outside as ``search=``: a faiss index, a scikit-learn transformer, a function.

None of their packages is imported here. They are known by what they have, and what they answer is
checked as a stranger's: see `foreign_answers.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nearlabel.search.exact.distances import Metric
from nearlabel.search.plugged.faiss_indexes import FaissIndex, is_faiss_index
from nearlabel.search.plugged.foreign_answers import PluggedIndex
from nearlabel.search.plugged.functions import FunctionIndex
from nearlabel.search.plugged.transformers import TransformerIndex, is_transformer

__all__ = ["PluggedSearch", "is_faiss_index", "plugged_search"]


@dataclass(frozen=True)
class PluggedSearch:
    """Search by somebody else's object, as an index of the kind that knows how to ask it."""

    kind: type[PluggedIndex]
    source: Any

    def build(self, vectors: Any, metric: Metric = "euclidean") -> PluggedIndex:
        """Prepare base rows for searches."""
        return self.kind(vectors, metric, self.source)


def plugged_search(search: Any) -> PluggedSearch | None:
    """The search that somebody else's object makes, or None where it makes none."""
    if isinstance(search, type):  # a class, not an object of it
        return None
    if is_faiss_index(search):
        return PluggedSearch(FaissIndex, search)
    if is_transformer(search):
        return PluggedSearch(TransformerIndex, search)
    return PluggedSearch(FunctionIndex, search) if callable(search) else None
