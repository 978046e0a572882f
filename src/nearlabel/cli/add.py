"""add."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nearlabel.cli.model_changes import Changing, OpenModel, source_name
from nearlabel.cli.model_items import items_for, vectors
from nearlabel.cli.options import Data, Part
from nearlabel.cli.options.reading import LabelReading, is_table, label_names
from nearlabel.cli.output import counted, steps

if TYPE_CHECKING:
    from nearlabel.datasets import Dataset


def add(
    model: str,
    data: Data,
    *,
    part: Part = "all",
    changing: Changing = Changing(),
    reading: LabelReading = LabelReading(),
) -> int | None:
    """Add labelled items to a model, which learns from them at once.

    Columns are matched by name, and prepared as when the model was fitted. Labels are matched by
    name, too; names that the model does not know become new labels.

    Parameters
    ----------
    model
        Model file, as fit writes it.
    part
        Rows to add, where the data set has a split.

    Examples
    --------
    nearlabel add songs.model more.csv
    nearlabel add songs.model more.csv --tags moods --id title --verify
    nearlabel add yeast.model yeast --part test
    cat new.jsonl | nearlabel add songs.model - --json
    """
    source = source_name(data)
    with changing.opened(model, ids=source) as opened:
        in_table = is_table(data, reading.format)
        items = items_for(opened.pipeline, reading, data, part)
        labels = opened.labels(items.Y, label_names(items, source, in_table))
        ids = _ids(opened, items, source, reading.id)
        X = vectors(opened.pipeline, items.X)
        with steps("adding") as progress:
            opened.model.partial_fit(X, ids=ids, progress=progress, **labels)
        new = opened.model.ids_[-len(items) :].tolist()
        added = f"added {counted(len(new), 'item')}"
        if ids is None:  # what they are called, since the file does not say it
            added += f", ids {new[0]} to {new[-1]}" if len(new) > 1 else f", id {new[0]}"
        return changing.finish(opened, added, added=len(new), ids=new)


def _ids(opened: OpenModel, items: Dataset, source: str, column: str | None) -> Any:
    """The ids of new items, or None where they get the numbers that follow."""
    import numpy as np

    from nearlabel.common.messages import first_twice, shown, some

    if items.row_names is None:
        if not opened.has_numbers:
            raise ValueError(
                f"{source} has no ids, and the items of {opened.path} have names as ids: give "
                "--id, the column of the names"
            )
        return None
    names = items.row_names.tolist()
    way_out = "--ignore id" if column is None else f"leave out --id {column}"
    ids = opened.ids(names, f" in {source}; {way_out}, and the numbers follow on")
    if (twice := first_twice(names)) is not None:
        raise ValueError(f"{source} has two items with the id {shown(twice)}")
    known = ids[np.isin(ids, opened.model.ids_)].tolist()
    if known:
        raise ValueError(
            f"{opened.path} has items with the ids of {source} already: {some(known)}; relabel "
            "gives them other labels, forget takes them out"
        )
    return ids
