"""Searches from outside as ``search=``: a faiss index, a scikit-learn transformer, a function.

None of their packages is imported here. They are known by what they have, and what they answer is
checked as a stranger's: see `answers.py`.
"""

from __future__ import annotations

from typing import Any

from nearlabel.search.plugged.faiss_indexes import FaissSearch, is_faiss_index
from nearlabel.search.plugged.functions import FunctionSearch
from nearlabel.search.plugged.transformers import TransformerSearch, is_transformer

__all__ = [
    "FaissSearch",
    "FunctionSearch",
    "PluggedSearch",
    "TransformerSearch",
    "is_faiss_index",
    "plugged_search",
]

PluggedSearch = FaissSearch | TransformerSearch | FunctionSearch


def plugged_search(search: Any) -> PluggedSearch | None:
    """The search that somebody else's object makes, or None where it makes none."""
    if isinstance(search, type):  # a class, not an object of it
        return None
    if is_faiss_index(search):
        return FaissSearch(search)
    if is_transformer(search):
        return TransformerSearch(search)
    return FunctionSearch(search) if callable(search) else None
