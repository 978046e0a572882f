"""External searches as ``search=``: a faiss index, a scikit-learn transformer, a function.

None of their packages is imported here. They are recognized by their attributes, and their results
are validated: see `foreign_answers.py`.
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
    """A search by an external object, wrapped in the kind of index that can query it."""

    kind: type[PluggedIndex]
    source: Any

    def build(self, vectors: Any, metric: Metric = "euclidean") -> PluggedIndex:
        """Prepare base rows for searches."""
        return self.kind(vectors, metric, self.source)


def plugged_search(search: Any) -> PluggedSearch | None:
    """The search by an external object, or None if it cannot search."""
    if isinstance(search, type):  # a class, not an instance
        return None
    if is_faiss_index(search):
        return PluggedSearch(FaissIndex, search)
    if is_transformer(search):
        return PluggedSearch(TransformerIndex, search)
    return PluggedSearch(FunctionIndex, search) if callable(search) else None
