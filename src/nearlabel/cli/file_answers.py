"""Predictions of a stored model for the items of a file: what predict and rank share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cyclopts import Parameter

from nearlabel.cli.model_columns import transformers
from nearlabel.cli.model_items import (
    check_keeps_items,
    items_for,
    load_model,
    set_jobs,
    vectors,
)
from nearlabel.cli.open_collections import is_collection
from nearlabel.cli.options import Json, Output, Part
from nearlabel.cli.options.reading import FileReading
from nearlabel.cli.options.searching import Searching
from nearlabel.cli.output import (
    Block,
    check_results,
    counted,
    is_table,
    render,
    steps,
    write_results,
)
from nearlabel.common.progress import Stages

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator


# Rows that are answered before the next are searched: many, since a search by lists is far faster
# for many queries at once.
_ROWS_AT_ONCE = 2**15
Record = dict[str, Any]


@dataclass(frozen=True)
class Blocks:
    """Items in blocks of rows, as a model takes them.

    Attributes
    ----------
    pipeline : Pipeline
    items : Dataset
    skipped : sequence of (name, reason), or None
        Pictures that could not be read; None if the items are not pictures.
    """

    pipeline: BaseEstimator
    items: Any
    skipped: Sequence[tuple[str, str]] | None

    def __call__(self, what: str) -> Iterator[tuple[Any, Any, Any]]:
        """Names of rows, their vectors, and a callback for progress."""
        items = self.items
        names = range(1, len(items) + 1) if items.row_names is None else items.row_names.tolist()
        with steps(what) as progress:
            stages = Stages(progress, len(items))
            for start in range(0, len(items), _ROWS_AT_ONCE):
                rows = slice(start, min(start + _ROWS_AT_ONCE, len(items)))
                X = vectors(self.pipeline, items, rows)
                yield names[rows], X, stages.next(rows.stop - rows.start)


@Parameter(name="*")
@dataclass(frozen=True)
class Answering:
    """Which items are predicted, with which search, and where the results go.

    Parameters
    ----------
    part
        Rows to use, if the data set has a split.
    output
        Write a .csv, .tsv or .jsonl file instead of a table; - for CSV on standard output.
    """

    part: Part = "all"
    output: Output = None
    json: Json = False
    searching: Searching = Searching()
    reading: FileReading = FileReading()

    def load(self, path: str, data: Sequence[str]) -> tuple[Any, Blocks]:
        """Read a model, and items with its features, which come in blocks of rows."""
        if is_collection(path):
            raise ValueError(
                f"{path} is a collection; 'nearlabel tag {path} {data[0]}' suggests tags"
            )
        check_results(self.output, path, *data)
        from nearlabel.cli.picture_items import picture_step

        pipeline = load_model(path)
        model = pipeline[-1]
        if self.searching.search is not None:
            check_keeps_items(model, path, "--search")
            model.search_with(self.searching.method())
        of_pictures = picture_step(transformers(pipeline))
        if self.searching.jobs is not None:
            set_jobs(model, self.searching.jobs)
            if of_pictures is not None:
                of_pictures.set_params(n_jobs=self.searching.jobs)
        items = items_for(pipeline, self.reading, data[0], self.part, data[1:], labels=())
        return model, Blocks(pipeline, items, getattr(items, "skipped", None))

    @property
    def is_table(self) -> bool:
        """Whether results go to a file of rows and cells."""
        return is_table(self._file)

    @property
    def _file(self) -> str | None:
        return None if self.json and self.output == "-" else self.output  # JSON goes there anyway

    def deliver(
        self,
        records: Iterable[Record],
        rows: Callable[[Record], list[Record]],
        text: Block | Iterable[Block],
        skipped: Sequence[tuple[str, str]] | None = None,
    ) -> None:
        """Write the records to a file, there as one or several rows each, or print them.

        The `text` may consume the same records, since only one of the two is printed.
        """
        if self._file is None:
            broken = ({"id": name, "labels": None, "skipped": why} for name, why in skipped or ())
            render([*records, *broken] if self.json else None, text, self.json)
            return
        if self.is_table:
            records = (row for record in records for row in rows(record))
        count = write_results(self._file, records)
        if self._file != "-":
            counts = {} if skipped is None else {"skipped": len(skipped)}
            record = {"output": self.output, "rows": count, **counts}
            render(record, f"wrote {self.output} ({counted(count, 'row')})", self.json)
