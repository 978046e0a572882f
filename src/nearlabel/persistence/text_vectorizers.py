"""scikit-learn's CountVectorizer, TfidfVectorizer and HashingVectorizer in model files.

A vectorizer runs on any text, so the parameters in a file are restricted: it reads strings, never
files; its token pattern takes time linear in the length of the text; and its n-grams are not so
long that their number and length would exhaust the memory.
"""

from __future__ import annotations

import re

import numpy as np
from sklearn.base import BaseEstimator

from nearlabel.common.arrays import Tree
from nearlabel.methods.fields import stored_array
from nearlabel.persistence.values import as_stored

_LONGEST_NGRAM = 32
_MOST_HASHES = 2**24  # columns of a HashingVectorizer
# Characters and classes, of which the first is optional and the last may be repeated: there is next
# to no backtracking. The second \b needs the first, or every character of a long word would start a
# search for its end.
_ESCAPED = r"\\[wWdDsS]|\\[^\w\s]"
_CLASS = rf"\[\^?(?:{_ESCAPED}|[^\]\[\\])+\]"
_CHARACTER = rf"(?:{_ESCAPED}|{_CLASS}|[\w ,;:'\"#@!%&=~/<>.-])"
_WORD = rf"(?:{_CHARACTER}\?)?{_CHARACTER}*{_CHARACTER}(?:[+*?]|\{{\d{{1,3}}(?:,\d{{0,3}})?\}})?"
_PLAIN_PATTERN = re.compile(rf"(?:\(\?[ui]+\))?(?:\\b{_WORD}(?:\\b)?|{_WORD})")


def vectorizer_tree(vectorizer: BaseEstimator) -> Tree:
    """The fitted state of a vectorizer: its words in order, and their weights."""
    check_vectorizer(vectorizer)
    words = sorted(vectorizer.vocabulary_, key=vectorizer.vocabulary_.__getitem__)
    words = as_stored(words, f"{type(vectorizer).__name__}'s vocabulary_")
    idf = vectorizer.idf_ if getattr(vectorizer, "use_idf", False) else None
    return {"vocabulary": words, "idf": None if idf is None else np.asarray(idf)}


def vectorizer_from(made: type[BaseEstimator], parameters: Tree, tree: Tree) -> BaseEstimator:
    """The vectorizer of a tree: with its vocabulary given, it learns nothing from an empty text."""
    words = tree["vocabulary"]
    if not isinstance(words, list) or not all(type(word) is str for word in words):
        raise ValueError("its vocabulary must be a list of strings")
    given = parameters.pop("vocabulary", None)
    vectorizer = made(**parameters, vocabulary={word: place for place, word in enumerate(words)})
    check_vectorizer(vectorizer)
    vectorizer.fit([""])
    if len(vectorizer.vocabulary_) != len(words):
        raise ValueError("its vocabulary has a word twice")
    if getattr(vectorizer, "use_idf", False):
        idf = stored_array(tree["idf"], "idf", "f", 1)
        if idf.shape != (len(words),):
            raise ValueError("its idf does not match its vocabulary")
        vectorizer.idf_ = idf
    vectorizer.vocabulary, vectorizer.fixed_vocabulary_ = given, given is not None
    return vectorizer


def check_vectorizer(vectorizer: BaseEstimator) -> None:
    """Raise an error for parameters that are invalid, or harmful in an untrusted file."""
    name, pattern = type(vectorizer).__name__, vectorizer.token_pattern
    if vectorizer.input != "content":
        raise _refused(vectorizer, "input", "a loaded model may read strings but not open files")
    if pattern is not None and not is_plain_pattern(pattern):
        raise _refused(
            vectorizer,
            "token_pattern",
            r"it must consist of characters and classes of which only the last is repeated, such "
            r"as '\b\w\w+\b' or '[^,]+'; other patterns may run forever on some texts",
        )
    low, high = vectorizer.ngram_range
    if type(low) is not int or type(high) is not int or not 1 <= low <= high <= _LONGEST_NGRAM:
        raise _refused(vectorizer, "ngram_range", f"it must be within 1 to {_LONGEST_NGRAM}")
    if getattr(vectorizer, "n_features", 1) > _MOST_HASHES:
        raise _refused(vectorizer, "n_features", f"it must be at most {_MOST_HASHES}")
    try:
        re.compile(pattern or "")
        b"a".decode(vectorizer.encoding)
    except (re.error, LookupError, UnicodeError) as error:
        raise ValueError(f"its {name} is not valid: {error}") from None


def _refused(vectorizer: BaseEstimator, key: str, why: str) -> ValueError:
    given = f"{type(vectorizer).__name__}'s {key}={getattr(vectorizer, key)!r}"
    return ValueError(f"{given} is not allowed in a model file: {why}")


def is_plain_pattern(pattern: object) -> bool:
    """Whether a regular expression takes time linear in the length of any text."""
    return (
        isinstance(pattern, str)
        and len(pattern) <= 200
        and _PLAIN_PATTERN.fullmatch(pattern) is not None
    )
