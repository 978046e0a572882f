"""What a model says of items, by names, a run of rows at a time: for predict and rank."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from cyclopts import Parameter

from nearlabel.cli.options import Json, Output, Part
from nearlabel.cli.options.reading import Reading
from nearlabel.cli.options.searching import Searching
from nearlabel.cli.output import Steps, say, say_json, say_table
from nearlabel.cli.quick_imports import SCALING, import_scikit_learn
from nearlabel.cli.result_files import check_results, is_table, write_results
from nearlabel.common.progress import Stages

# Rows of which answers are told before the next are searched: many, since a search by lists is far
# faster for many queries than for each alone.
_ROWS_AT_ONCE = 2**15
_READING, _SEARCHING = Reading(), Searching()
Record = dict[str, Any]


@Parameter(name="*")
@dataclass(frozen=True)
class Answering:
    """For which items, by which search, and how it is told.

    Parameters
    ----------
    part
        Rows to answer for, where the data set has a split.
    output
        Write a .csv, .tsv or .jsonl file instead of a table.
    """

    part: Part = "all"
    output: Output = None
    json: Json = False
    searching: Searching = _SEARCHING
    reading: Reading = _READING

    @property
    def in_cells(self) -> bool:
        """Whether a table is written to a file."""
        return self.output is not None and is_table(self.output)

    def tell(
        self,
        records: Iterable[Record],
        cells: Callable[[Record], list[Record]],
        head: tuple[str, str],
        shown: Callable[[Record], tuple[Any, str]],
    ) -> None:
        """Write or print records: as rows of `cells` to a table, as `shown` to people."""
        if self.output is None and self.json:
            say_json(list(records))
        elif self.output is None:
            say_table(head, map(shown, records), numbers=False)
        else:
            if self.in_cells:
                records = (row for record in records for row in cells(record))
            count = write_results(self.output, records)
            if self.json:
                say_json({"output": self.output, "rows": count})
            else:
                say(f"wrote {self.output} ({count} rows)")


class Answers:
    """What a model of a file says of items of another."""

    def __init__(self, path: str, data: str, answering: Answering) -> None:
        check_results(answering.output, path, data)
        import_scikit_learn(*SCALING)
        from sklearn.pipeline import Pipeline

        import nearlabel as nl

        loaded = nl.load(path)
        self._all = loaded if isinstance(loaded, Pipeline) else Pipeline([("model", loaded)])
        self._model = self._all[-1]
        if not hasattr(self._model, "rank"):
            raise ValueError(f"{path} holds a {type(self._model).__name__} and no model")
        searching = answering.searching
        if searching.search is not None:
            self._model.search_with(searching.method())
        if searching.jobs is not None:
            model = self._model
            for one in (
                model,
                getattr(model, "estimator", None),
                getattr(model, "estimator_", None),
            ):
                if one is not None and "n_jobs" in one.get_params(deep=False):
                    one.set_params(n_jobs=searching.jobs)
        names = getattr(loaded, "feature_names_in_", None)
        features = None if names is None else [str(name) for name in names.tolist()]
        part = answering.part
        self._items = answering.reading.load(data, part, features=features, labels=())

    def _blocks(self, what: str) -> Iterator[tuple[Any, Any, Any]]:
        """Names and vectors of runs of rows, and progress of answering for them."""
        from scipy import sparse
        from sklearn.utils import get_tags

        items, scaling = self._items, self._all[:-1]
        names = range(1, len(items) + 1) if items.row_names is None else items.row_names.tolist()
        dense = sparse.issparse(items.X) and not get_tags(self._all).input_tags.sparse
        with Steps(what) as progress:
            stages = Stages(progress, len(items))
            for start in range(0, len(items), _ROWS_AT_ONCE):
                rows = slice(start, min(start + _ROWS_AT_ONCE, len(items)))
                X = items.X[rows].toarray() if dense else items.X[rows]
                if len(scaling):
                    X = scaling.transform(X)
                yield names[rows], X, stages.next(rows.stop - rows.start)

    def predicted(self) -> Iterator[Record]:
        """The labels that each item gets."""
        import numpy as np
        from scipy import sparse

        classes = self._model.classes_
        for names, X, progress in self._blocks("predicting"):
            decided = self._model.predict(X, progress=progress)
            if isinstance(classes, np.ndarray):  # y was one column of two classes
                decided = (decided == classes[1])[:, None]
            sets = sparse.csr_array(decided)
            sets.sort_indices()
            for name, start, stop in zip(names, sets.indptr[:-1], sets.indptr[1:], strict=True):
                labels = [self._label(label) for label in sets.indices[start:stop].tolist()]
                yield {"id": name, "labels": labels}

    def ranked(self, top: int) -> Iterator[Record]:
        """The best labels of each item with their scores."""
        for names, X, progress in self._blocks("ranking"):
            best = self._model.rank(X, top, progress=progress)
            rows = zip(names, best.labels.tolist(), best.scores.tolist(), strict=True)
            for name, labels, scores in rows:
                pairs = zip(map(self._label, labels), scores, strict=True)
                scored = [{"label": label, "score": score} for label, score in pairs]
                yield {"id": name, "labels": scored}

    def explained(self, top: int) -> Iterator[tuple[Any, Any]]:
        """The name of each item and the explanation of its best labels."""
        for names, X, progress in self._blocks("explaining"):
            for place, name in enumerate(names):
                yield name, self._model.explain(X[place : place + 1], top)
                progress(place + 1, len(names))

    def _label(self, label: int) -> str:
        names = self._model.label_names_
        return str(label) if names is None else str(names[label])

    def separator(self) -> str:
        """The mark between labels in one cell, by which the reader of tables divides them again."""
        names = self._model.label_names_
        if names is not None and any(";" in name for name in names.tolist()):
            raise ValueError("a label has ';' in its name: write a .jsonl file")
        return ";"
