"""Texts as transformers get them."""

from __future__ import annotations

from typing import Any

from nearlabel.common.validation import ArgumentTypeError


def checked_texts(X: Any) -> list[str]:
    """Texts as a list, or an error that names the first that is none."""
    if isinstance(X, str | bytes):
        raise ArgumentTypeError(f"X must be an iterable of texts; got the one {X[:40]!r}", "X")
    try:
        texts = list(X)
    except TypeError:
        raise ArgumentTypeError(f"X must be an iterable of texts; got {X!r}", "X") from None
    for place, text in enumerate(texts):
        if not isinstance(text, str):
            what = f"{type(text).__name__} at place {place}"
            raise ArgumentTypeError(f"X must hold texts; got {what}: {str(text)[:40]!r}", "X")
    return texts
