"""Counts of frequent words, as in the papers on web pages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from nearlabel.common.arrays import Array, Csr, Tree, canonical_csr
from nearlabel.common.messages import some
from nearlabel.common.validation import ArgumentError, ArgumentTypeError, check_real
from nearlabel.features.texts import checked_texts, text_tags


class FrequentWords(TransformerMixin, BaseEstimator):
    """Counts of the words that occur in the most texts: 2 % of all words, as for web pages in [1]_.

    A word is two or more letters, digits or underscores in a row, lowercased. The words that occur
    in the largest number of training texts are kept; ties are broken in alphabetical order.

    Parameters
    ----------
    share : float, default=0.02
        The share of all words to keep: above 0 and up to 1, rounded to a whole number of words, but
        at least one.
    stop_words : "english", list of str or None, default=None
        Words to leave out before counting: scikit-learn's English list, or a custom list.

    Attributes
    ----------
    words_ : ndarray of str, shape (d,)
        The words that are kept, in alphabetical order.
    document_frequency_ : ndarray of int, shape (d,)
        The number of training texts with each of them.

    See Also
    --------
    sklearn.feature_extraction.text.TfidfVectorizer : All words, with larger weights for rare ones;
        the better choice unless a paper is to be reproduced.

    References
    ----------
    .. [1] M.-L. Zhang, Z.-H. Zhou. ML-KNN: A lazy learning approach to multi-label learning.
       Pattern Recognition 40 (2007), section 4.3.

    Examples
    --------
    >>> texts = ["the sea and the sky", "the sky at night", "sea birds"]
    >>> words = FrequentWords(share=0.3).fit(texts)
    >>> words.get_feature_names_out()
    array(['sea', 'sky'], dtype=object)
    >>> words.transform(["Sea, sea, sea!", "sky"]).toarray()
    array([[3, 0],
           [0, 1]])
    """

    def __init__(
        self, share: float = 0.02, *, stop_words: str | Iterable[str] | None = None
    ) -> None:
        self.share = share
        self.stop_words = stop_words

    def fit(self, X: Iterable[str], y: object = None) -> Self:
        """Choose the words from training texts.

        Parameters
        ----------
        X : iterable of str
        y : ignored
        """
        share = _checked_share(self.share)
        counter = CountVectorizer(stop_words=_checked_stop_words(self.stop_words))
        texts = checked_texts(X)
        try:
            counts = counter.fit_transform(texts)
        except ValueError:  # the only one that is left
            raise ValueError("X contains no words to count") from None
        frequency = np.bincount(counts.indices, minlength=counts.shape[1])  # one entry per text
        count = max(round(share * len(frequency)), 1)
        # Columns are in alphabetical order, which a stable sort keeps among ties.
        chosen = np.sort(np.argsort(-frequency, kind="stable")[:count])
        self.words_: Array = counter.get_feature_names_out()[chosen].astype(object)
        self.document_frequency_: Array = frequency[chosen]
        return self

    def transform(self, X: Iterable[str]) -> Csr:
        """Count the words of texts.

        Parameters
        ----------
        X : iterable of str

        Returns
        -------
        csr_array of int64, shape (n, d)
        """
        check_is_fitted(self)
        counter = CountVectorizer(vocabulary=self.words_.tolist())
        return canonical_csr(counter.transform(checked_texts(X)))

    def get_feature_names_out(self, input_features: object = None) -> Array:
        """The words, one per column."""
        check_is_fitted(self)
        return self.words_

    def _tree(self) -> Tree:
        check_is_fitted(self)
        return {
            "class": type(self).__name__,
            "share": float(self.share),
            "stop_words": _checked_stop_words(self.stop_words),
            "words": self.words_.tolist(),
            "document_frequency": self.document_frequency_,
        }

    @classmethod
    def _from_tree(cls, tree: Tree, _: int) -> Self:
        transformer = cls(tree["share"], stop_words=tree["stop_words"])
        _checked_share(transformer.share)
        _checked_stop_words(transformer.stop_words)
        words, frequency = tree["words"], np.asarray(tree["document_frequency"])
        if not isinstance(words, list) or not words or not all(type(word) is str for word in words):
            raise ValueError("words must be a list of strings")
        if sorted(set(words)) != words:
            raise ValueError("words must be in alphabetical order")
        if frequency.shape != (len(words),) or frequency.dtype.kind not in "iu":
            raise ValueError("document frequencies must have one count per word")
        transformer.words_, transformer.document_frequency_ = np.array(words, object), frequency
        return transformer

    def __sklearn_tags__(self) -> Tags:
        return text_tags(super().__sklearn_tags__())


def _checked_share(share: object) -> float:
    value = check_real(share, "share", low=0, high=1)
    if value == 0:
        raise ArgumentError(f"share must be above 0 and at most 1; got {share!r}", "share")
    return value


def _checked_stop_words(words: object) -> str | list[str] | None:
    """Stop words in the form of CountVectorizer."""
    if words is None or words == "english":
        return words
    wanted = "stop_words must be 'english', a list of words or None"
    if isinstance(words, str):
        raise ArgumentError(f"{wanted}; got {words!r}", "stop_words")
    # The next `fit` would find an iterator exhausted.
    if isinstance(words, Iterator) or not isinstance(words, Iterable):
        raise ArgumentTypeError(f"{wanted}; got {words!r}", "stop_words")
    listed = list(words)
    if others := [word for word in listed if not isinstance(word, str)]:
        raise ArgumentTypeError(f"{wanted}; got {some(others)} among them", "stop_words")
    return listed
