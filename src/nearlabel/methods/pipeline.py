"""A scikit-learn pipeline that also has nearlabel's additional methods."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from copy import copy
from inspect import signature
from typing import Any, Self

import numpy as np
from sklearn import get_config
from sklearn.pipeline import Pipeline as SklearnPipeline
from sklearn.pipeline import make_pipeline as sklearn_pipeline
from sklearn.utils.validation import check_is_fitted

from nearlabel.methods.answers import as_one_row
from nearlabel.methods.forwarding import ForwardedAnswers, ForwardedChanges, if_delegate_has


class Pipeline(SklearnPipeline, ForwardedAnswers, ForwardedChanges):
    """scikit-learn's Pipeline, with the methods that nearlabel's estimators add to `predict`.

    The last step is a nearlabel estimator; the steps before it transform the items first, as in
    `predict`. So `X`, and the `x` of `explain`, have the form that the first step accepts; changes
    of the training items do not fit the transformers again. ``nl.Pipeline(fitted.steps)`` adds
    these methods to a fitted scikit-learn pipeline.

    Parameters
    ----------
    steps : list of (str, estimator)
        As in scikit-learn; so are the other parameters.

    See Also
    --------
    make_pipeline : The same without names for the steps.

    Examples
    --------
    >>> import nearlabel as nl
    >>> from sklearn.feature_extraction.text import TfidfVectorizer
    >>> texts = ["sea and sand", "the sea at night", "a city at night", "city lights"]
    >>> tags = [[1, 0], [1, 1], [0, 1], [0, 1]]
    >>> model = nl.make_pipeline(TfidfVectorizer(), nl.BRkNN(2))
    >>> model.fit(texts, tags, label_names=["beach", "evening"])
    Pipeline(steps=[('tfidfvectorizer', TfidfVectorizer()),
                    ('brknn', BRkNN(n_neighbors=2))])
    >>> model.rank(["sand by the sea"]).names.tolist()
    [['beach', 'evening']]
    """

    def fit(self, X: Any, y: Any = None, **params: Any) -> Self:
        """Fit the transformers one after the other, and the method to their output.

        Parameters
        ----------
        X : items in the form that the first step accepts
        y : labels in any form that the method's `fit` accepts
        **params
            Keywords of the method's `fit`, such as `label_names` and `ids`; those of another step
            with its name, ``step__keyword``, as in scikit-learn. With metadata routing enabled, the
            steps request what they need.

        Returns
        -------
        self
        """
        if not get_config()["enable_metadata_routing"] and hasattr(self._delegate(), "fit"):
            own = signature(self._delegate().fit).parameters.values()
            keywords = {option.name for option in own if option.kind is option.KEYWORD_ONLY}
            last = self.steps[-1][0]
            params = {f"{last}__{key}" if key in keywords else key: params[key] for key in params}
        super().fit(X, y, **params)
        return self

    @property
    def label_names_(self) -> Any:
        """Names of the labels."""
        return self._delegate().label_names_

    @if_delegate_has("tree_text")
    def tree_text(self, label: Any = None) -> str:
        """Print the tree of a label as the method does.

        Features have the names that scikit-learn gives to what the transformers return, and cuts
        are in their units: a tree needs no scaling.
        """
        method = self._delegate()
        check_is_fitted(method)
        if len(self) > 1 and not hasattr(method, "feature_names_in_"):
            method = copy(method)
            with suppress(AttributeError, ValueError):  # from transformers without names
                names = self[:-1].get_feature_names_out()
                short = [str(name).partition("__")[2] for name in names]
                # Without the name of a part of a ColumnTransformer: "tempo" for "numbers__tempo".
                is_unique = all(short) and len(set(short)) == len(short)
                method.feature_names_in_ = np.array(short) if is_unique else names
        return str(method.tree_text(label))

    def _delegate(self) -> Any:
        return self.steps[-1][1]

    def _forwarded_items(self, X: Any) -> Any:
        """Items as transformed for the last step."""
        check_is_fitted(self._delegate())
        for _, step in self.steps[:-1]:
            if not _is_skipped(step):
                X = step.transform(X)
        return X

    def _forwarded_item(self, x: Any) -> Any:
        """A string is one item; a list of strings has one or several."""
        if isinstance(x, str | Mapping):
            return self._forwarded_items([x])
        # A step for strings or dicts has no number of features: a list of these has several items.
        first = next(step for _, step in self.steps if not _is_skipped(step))
        return self._forwarded_items(as_one_row(x) if hasattr(first, "n_features_in_") else x)


def _is_skipped(step: Any) -> bool:
    return step is None or (isinstance(step, str) and step == "passthrough")


def make_pipeline(*steps: Any, memory: Any = None, verbose: bool = False) -> Pipeline:
    """Make a `Pipeline` whose steps are named after their classes, as in scikit-learn.

    Parameters
    ----------
    *steps : transformers and, last, a nearlabel estimator
    memory, verbose
        As in scikit-learn.

    Returns
    -------
    Pipeline
    """
    named = sklearn_pipeline(*steps, memory=memory, verbose=verbose)
    return Pipeline(named.steps, memory=memory, verbose=verbose)
