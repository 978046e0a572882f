"""Changes of a fitted model: training rows are added, forgotten and relabelled.

How a change is computed is in `changes.py`. This module has what all changes share: input is
checked, one writer works at a time, a change is in the journal of a file before it is visible, and
the next state replaces the previous one atomically.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted, validate_data

from nearlabel.common.arrays import Array, LabelsLike, MatrixLike, Tree
from nearlabel.common.journal import Journal
from nearlabel.common.progress import Progress
from nearlabel.common.validation import (
    Labels,
    check_labels,
    check_n_jobs,
    check_same_length,
    checked_vectors,
)
from nearlabel.methods.change_records import change_record, replayed
from nearlabel.methods.changes import (
    compacted,
    learned_again,
    with_labels,
    with_rows,
    without_rows,
)
from nearlabel.methods.fitted_model import FittedModel, next_state, state_of
from nearlabel.methods.further_labels import as_one_item, check_same_classes, further_labels
from nearlabel.methods.verification import Verification, verified
from nearlabel.search import check_search

Ids = npt.ArrayLike | Iterable[object]  # an id or several, which may also be a set or a generator


class LivingModel(FittedModel):
    """A model whose training rows can change; predictions are left to subclasses."""

    _journal: Journal | None = None

    @abstractmethod
    def _fit_rows(
        self, X: MatrixLike, labels: Labels, ids: object, progress: Progress | None
    ) -> Self:
        """Learn everything from training rows with these labels."""

    @property
    def ids_(self) -> Array | None:
        """The ids of the training rows, in order of arrival, shape (n,); None without vectors."""
        check_is_fitted(self)
        items = self.items_
        return None if items.store is None else items.ids(items.places)

    def partial_fit(
        self,
        X: MatrixLike,
        y: LabelsLike,
        classes: npt.ArrayLike | None = None,
        ids: npt.ArrayLike | None = None,
        *,
        label_names: npt.ArrayLike | None = None,
        separator: str | None = None,
        progress: Progress | None = None,
    ) -> Self:
        """Add training rows, and learn from them immediately.

        Only what the new rows change is computed: the neighbors of nearby rows, and their counts.
        The model is then the same as after `fit` on all rows, except that `LAMLkNN` keeps its
        centers, and `PositivekNN` its rate and its cut, until `refresh`. `IBLR`, `BalancedkNN`,
        `LabelThresholds` and `BlendedNeighbors` learn again when they are next used, with a
        warning.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame, shape (m, d)
        y : labels of these rows, in any form that `fit` accepts
            Labels that the model does not know yet become its last columns: further columns of a
            matrix, columns of a DataFrame with new names, or new tags.
        classes : array-like, optional
            All classes, for the first call on an unfitted model, if y may lack some of them: the
            two classes of a 1-d y, or tags or names of labels. Later calls may repeat them.
        ids : sequence of str or int, shape (m,), optional
            Unique row ids; by default the next numbers, never those of forgotten rows.
        label_names : sequence of str, optional
            Names of the columns of y.
        separator, progress
            As in `fit`.

        Returns
        -------
        self
        """
        if "items_" not in vars(self):
            labels = check_labels(y, label_names, separator, classes)
            return self._fit_rows(X, labels, ids, progress)
        with self._changing():
            X = checked_vectors(partial(validate_data, self, reset=False), X, "X")
            check_same_classes(self, classes)
            further = further_labels(self, y, label_names, separator)
            check_same_length(X=X.shape[0], y=further.matrix.shape[0])
            after, first = with_rows(self, X, further, ids, progress), self.items_.n_places
            return self._become(after, "add", np.arange(first, after.items_.n_places))

    def forget(self, ids: Ids, *, progress: Progress | None = None) -> Self:
        """Remove training rows from the model, and from everything that it has learned.

        From then on no prediction depends on them. Their vectors and labels stay in memory, unused,
        until `compact`.

        Parameters
        ----------
        ids : id or sequence of unique ids
        progress : callable, optional
            Called with (rows searched, total rows) if the model has to search all rows again.

        Returns
        -------
        self
        """
        with self._changing():
            places = self.items_.checked_places(ids)
            if not len(places):
                return self
            return self._become(without_rows(self, places, progress), "forget", places)

    def relabel(
        self,
        ids: Any,
        y: Any,
        *,
        label_names: npt.ArrayLike | None = None,
        separator: str | None = None,
        progress: Progress | None = None,
    ) -> Self:
        """Give training rows other labels, and learn from them immediately.

        Parameters
        ----------
        ids : id or sequence of m unique ids
        y : labels of these rows, as in `partial_fit`
            They replace the rows' labels. For a single id, also just its tags.
        label_names, separator
            As in `partial_fit`.
        progress
            As in `forget`.

        Returns
        -------
        self
        """
        with self._changing():
            places = self.items_.checked_places(ids)
            if np.ndim(ids) == 0 and not isinstance(self.classes_, np.ndarray):
                texts = y if isinstance(y, list | tuple) else [y]
                y = as_one_item(y, self._separator_of(texts) or separator)
            labels = further_labels(self, y, label_names, separator)
            check_same_length(ids=len(places), y=labels.matrix.shape[0])
            return self._become(with_labels(self, places, labels, progress), "relabel", places)

    def refresh(self, *, progress: Progress | None = None) -> Self:
        """Learn everything again, including what changes do not update: centers, rates and cuts.

        Parameters
        ----------
        progress : callable, optional
            Called with (rows searched, total rows), if a search is necessary.

        Returns
        -------
        self
        """
        with self._changing():
            self._become(learned_again(self, anew=True, progress=progress))
            return self._fold_journal()

    def compact(self) -> Self:
        """Remove the gaps left by forgotten rows, and rebuild the search index.

        Afterwards nothing of a forgotten row is in memory, nor in a file saved then. Rows are
        renumbered in their order; their ids stay the same.

        Returns
        -------
        self
        """
        with self._changing():
            after = compacted(self)
            if after.items_.store is not None and self.needs.graph:
                n_jobs = check_n_jobs(self.n_jobs)
                after.items_.search_index().recall(after.n_neighbors_, n_jobs=n_jobs)
            self._become(after)
            return self._fold_journal()

    def verify(self, *, progress: Progress | None = None) -> Verification:
        """Compute everything again from the vectors and the labels, and compare.

        Parameters
        ----------
        progress : callable, optional
            Called with (rows searched, total rows).

        Returns
        -------
        Verification
            True if everything agrees; lists what was compared and what differs. No change is made
            in the meantime.
        """
        with self._settled() as state:
            return verified(state, progress)

    def search_with(self, search: object) -> Self:
        """Change the search, without learning again.

        Parameters
        ----------
        search : {"auto", "exact", "approximate"} or object
            Like the parameter `search`.

        Returns
        -------
        self
        """
        check_search(search)
        with self._changing(is_kept=False):
            after = next_state(self)
            after._replace_items(replace(self.items_, search=search, index=None))
            return self._become(after)

    def close(self) -> None:
        """Release the file that this model was loaded from with ``journal=True``.

        The model can still predict, but not be changed. Without a journal, nothing happens. Closing
        it again does no harm, and ``with nl.load(path, journal=True) as model:`` closes it
        automatically.
        """
        if self._journal is not None:
            with self.items_.lock.held():
                self._journal.finish()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def _changing(self, *, is_kept: bool = True) -> Iterator[None]:
        """Hold the lock during a change: only one at a time, even if `progress` starts another.

        If the model has a journal, a change to be kept goes to the journal or the file.
        """
        check_is_fitted(self)
        why = "a model cannot be changed while this thread changes, saves or verifies it"
        with self.items_.lock.held_once(why):
            if is_kept and self._journal is not None:
                self._journal.refuse_closed()  # others may have changed the file
            yield

    @contextmanager
    def _settled(self) -> Iterator[Self]:
        """The current state of the model, while changes are blocked."""
        check_is_fitted(self)
        with self.items_.lock.held():
            yield self._caught_up()

    def _become(self, state: Self, change: str = "", places: Array | None = None) -> Self:
        """Adopt the result of a change atomically; a change of rows is in the journal before."""
        if self._journal is None or places is None:
            self.__dict__ = state.__dict__
            return self
        record = change_record(change, self, state, places)
        with self._journal.appended(lambda: vars(self) is state.__dict__, record):
            self.__dict__ = state.__dict__
        return self

    def _replay(self, record: Tree) -> None:
        """Replay a change from a journal."""
        self._become(replayed(self, record))

    def _fold_journal(self) -> Self:
        """Rewrite the file of this model's journal, for changes that no record can express."""
        if self._journal is not None:
            self._journal.fold(self)
        return self

    def _caught_up(self) -> Self:
        """A state that has learned from all rows; learns now if that was deferred."""
        with self.items_.lock.held():
            if self._is_outdated:
                self._become(learned_again(self))
            return state_of(self)
