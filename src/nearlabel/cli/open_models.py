"""Model files that are open for changes."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from nearlabel.cli.model_columns import transformers
from nearlabel.cli.model_items import label_name, load_model, set_jobs
from nearlabel.cli.output import file_size, steps

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

    from nearlabel.common.arrays import Array, Csr, Tree
    from nearlabel.common.progress import Progress
    from nearlabel.methods.verification import Verification


@contextmanager
def open_model(path: str, jobs: int | None) -> Iterator[OpenModel]:
    """Open a model file for changes, which are made by so many threads."""
    pipeline = load_model(path, journal=True)
    with closing(pipeline[-1]):
        if pipeline[-1].ids_ is None:
            raise ValueError(f"{path} was fitted to a graph, without items, and cannot be changed")
        yield OpenModel(path, pipeline, jobs)


class OpenModel:
    """A model file that is open for changes.

    Attributes
    ----------
    path : str
    pipeline : Pipeline
    model : estimator
        Its last step.
    n_labels : int
        Labels that there were at the beginning.
    """

    kind, label = "model", "label"
    separator = None  # of labels in a text: the first that occurs

    def __init__(self, path: str, pipeline: BaseEstimator, jobs: int | None) -> None:
        self.path, self.pipeline, self.model = path, pipeline, pipeline[-1]
        self.n_labels = _n_labels(self.model)
        self._history = self.model.history_
        self._own_jobs, self._jobs = self.model.n_jobs, jobs
        self._written: str | None = None
        self._is_compacted = self._is_refreshed = False
        self._use_jobs()

    @property
    def label_names(self) -> list[str]:
        """The names of the labels, or their columns."""
        return [label_name(self.model, label) for label in range(_n_labels(self.model))]

    @property
    def has_numbers(self) -> bool:
        """Whether the ids of the items are numbers, not names."""
        return bool(self.model.ids_.dtype.kind == "i")

    def ids(self, names: Sequence[str], hint: str = "") -> Array:
        """Ids of the type that the model has; `hint` ends the error if they must be numbers."""
        import numpy as np

        from nearlabel.common.messages import shown

        if not self.has_numbers:
            return np.array(names, dtype=np.str_)
        odd = next((name for name in names if not re.fullmatch("-?[0-9]{1,18}", name)), None)
        if odd is not None:
            what = f"the items of {self.path} have numbers as ids; got {shown(odd)}"
            raise ValueError(f"{what}{hint}")
        return np.array([int(name) for name in names], dtype=np.int64)

    def known_ids(
        self,
        names: Sequence[str],
        source: str | None = None,
        *,
        ignore_missing: bool = False,
        advice: str = "",
    ) -> Array:
        """Ids of items that the model has; errors name the file that they are from.

        Unknown ids are an error, unless missing ones are to be ignored.
        """
        import numpy as np

        from nearlabel.common.messages import some

        ids = self.ids(names, f" in {source}" if source else "")
        is_known = np.isin(ids, self.model.ids_)
        if not ignore_missing and not is_known.all():
            where = f"{source}: " if source else ""
            missing = some(ids[~is_known].tolist())
            raise ValueError(f"{where}{self.path} has no item {missing}{advice}")
        return ids[is_known]

    def labels(self, Y: Csr, names: Sequence[str] | None) -> Tree:
        """Labels as `partial_fit` and `relabel` of the model take them.

        If the labels of the model have no names, the columns of Y are named by numbers.
        """
        import numpy as np
        from scipy import sparse

        from nearlabel.common.messages import shown

        q = self.n_labels
        if not Y.shape[1]:  # no item has a label
            return {"y": sparse.csr_array((Y.shape[0], q), dtype=np.int8)}
        if names is None or self.model.label_names_ is not None:
            return {"y": Y, "label_names": names}
        if isinstance(self.model.classes_, np.ndarray):  # of one column, by whatever name
            return {"y": Y}
        at = [int(name) if re.fullmatch("[0-9]{1,9}", name) else -1 for name in names]
        new = sorted(column for column in at if column >= q)
        for name, column in zip(names, at, strict=True):
            if column < 0 or (column >= q and new != [*range(q, q + len(new))]):
                raise ValueError(
                    f"the labels of {self.path} have no names: numbers from 0 to {q - 1} expected, "
                    f"or {q} for a new label; got {shown(name)}"
                )
        entries = Y.tocoo()
        columns = np.array(at, dtype=np.int64)[entries.col]
        shape = (Y.shape[0], q + len(new))
        return {"y": sparse.csr_array((entries.data, (entries.row, columns)), shape=shape)}

    def forget(
        self, given: Sequence[str], listed: Sequence[str], source: str | None, ignore_missing: bool
    ) -> Tree:
        """Forget items by their ids, some of them `listed` in a file; errors name it."""
        for file in filter(os.path.isfile, given):
            if file not in {str(id) for id in self.model.ids_}:
                raise ValueError(f"no item has the id {file}; for a file of ids, use --ids {file}")
        if not ignore_missing:
            advice = "; --ignore-missing skips such ids"
            self.known_ids(given, advice=advice)
            self.known_ids(listed, source, advice=advice)
        names = [*dict.fromkeys([*given, *listed])]
        ids = self.known_ids(names, ignore_missing=ignore_missing)
        with steps("forgetting") as progress:
            self.model.forget(ids, progress=progress)
        return {"forgotten": len(ids), "missing": len(names) - len(ids)}

    def relabel(
        self, names: Sequence[str], source: str | None, Y: Csr, labels: Sequence[str] | None
    ) -> None:
        """Replace the labels of items by their ids, which are from a file if it has a name."""
        self._relabel(self.known_ids(names, source), Y, labels)

    def edit(self, names: Sequence[str], add: Sequence[str], remove: Sequence[str]) -> None:
        """Add labels to those of items, and remove some."""
        import numpy as np
        from scipy import sparse

        from nearlabel.common.messages import some

        labels = self.label_names
        if unknown := [name for name in remove if name not in {*labels}]:
            raise ValueError(f"--remove: {self.path} has no label {some(unknown)}")
        labels += [name for name in add if name not in {*labels}]
        place = {name: column for column, name in enumerate(labels)}
        ids = self.known_ids(names)
        before = self.model._labels[self.model.items_.checked_places(ids)].tocoo()
        stays = ~np.isin(before.col, [place[name] for name in remove])
        new = np.array([place[name] for name in add], dtype=np.int64)
        rows = np.concatenate([before.row[stays], np.repeat(np.arange(len(ids)), len(new))])
        columns = np.concatenate([before.col[stays], np.tile(new, len(ids))])
        pairs = np.unique(np.stack([rows, columns]), axis=1)
        ones = np.ones(pairs.shape[1], dtype=np.int8)
        Y = sparse.csr_array((ones, pairs), shape=(len(ids), len(labels)))
        self._relabel(ids, Y, labels)

    def _relabel(self, ids: Array, Y: Csr, labels: Sequence[str] | None) -> None:
        with steps("relabelling") as progress:
            self.model.relabel(ids, progress=progress, **self.labels(Y, labels))

    def rewrite(self, *, compact: bool, refresh: bool) -> None:
        """Rewrite the model file; if that fails, the changes are already in the journal."""
        set_jobs(self.model, self._own_jobs)  # as the file keeps them
        is_changed = self.model.history_ != self._history
        try:
            if refresh:
                with steps("learning") as progress:
                    self.model.refresh(progress=progress)
            if compact:
                self.model.compact()
        except OSError as error:
            how = "--refresh" if refresh else "--compact"
            safe = f"the change is kept in {self._journal}, but " if is_changed else ""
            raise ValueError(
                f"{safe}{self.path} could not be written ({error.strerror or error}); run "
                f"'nearlabel forget {self.path} {how}' to try again"
            ) from error
        self._written, self._is_compacted, self._is_refreshed = self.path, compact, refresh
        self._use_jobs()

    def verify(self, progress: Progress) -> Verification:
        """Recompute everything from the items, and compare."""
        verified: Verification = self.model.verify(progress=progress)
        return verified

    def contents(self) -> Tree:
        """What the model has now and where that is written, for JSON."""
        written = self._written
        if written is None and self.model.history_ != self._history:
            written = self._journal
        return {
            "items": len(self.model.ids_),
            "labels": _n_labels(self.model),
            "new_labels": self.label_names[self.n_labels :],
            "written": written,
            "bytes": None if written is None else Path(written).stat().st_size,
            "compacted": self._is_compacted,
            "refreshed": self._is_refreshed,
        }

    def notes(self, record: Tree) -> Iterator[str]:
        """Which labels are new, where the changes are, and what --compact would do."""
        path, written, new = self.path, record["written"], record["new_labels"]
        if new:
            rest = f", …and {len(new) - 20:,} more" if len(new) > 20 else ""
            yield f"{'new label' if len(new) == 1 else 'new labels'}: {', '.join(new[:20])}{rest}"
        if written is None:
            return
        size = f"wrote {written} ({file_size(written)})"
        if written == path:
            yield f"{size}, with all changes{self._left_of_forgotten()}"
        elif "forgotten" in record:
            yield f"{size}; until --compact, {path} still holds what was forgotten"
        else:
            yield f"{size}; --compact folds it into {path}"

    def _left_of_forgotten(self) -> str:
        """What a rewritten file still contains of forgotten items, if there are any."""
        if not self.model.history_.forgotten:
            return ""
        learned = ["the preprocessing"] if transformers(self.pipeline) else []
        part = "" if self._is_refreshed else getattr(self.model, "kept_by_changes", "")
        learned += [part] if part else []
        if not learned:
            return " and without a trace of forgotten items"
        return f" and without forgotten items, except for their part in {' and '.join(learned)}"

    def _use_jobs(self) -> None:
        if self._jobs is not None:
            set_jobs(self.model, self._jobs)

    @property
    def _journal(self) -> str:
        """The path of the journal, for people: next to the file itself if the path is a link."""
        from nearlabel.common.journal import journal_path

        path = self.path
        return str(journal_path(path)) if Path(path).is_symlink() else f"{path}.journal"


def _n_labels(model: BaseEstimator) -> int:
    """The number of labels of a model; one if it was fitted to two classes."""
    import numpy as np

    return 1 if isinstance(model.classes_, np.ndarray) else len(model.classes_)
