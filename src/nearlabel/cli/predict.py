"""predict."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from nearlabel.cli.file_answers import Answering, Record, blocks, label_name
from nearlabel.cli.options import Data
from nearlabel.cli.result_files import is_table

if TYPE_CHECKING:
    from nearlabel.datasets import Dataset


def predict(model: str, data: Data, *, answering: Answering = Answering()) -> None:
    """Decide the labels of items.

    Columns are found by name; those that the model does not know are passed over.

    Parameters
    ----------
    model
        File that fit wrote.

    Examples
    --------
    nearlabel predict songs.model new.csv
    nearlabel predict songs.model new.csv -o tagged.csv
    cat new.jsonl | nearlabel predict songs.model - --json
    """
    pipeline, items = answering.load(model, data)
    names = pipeline[-1].label_names_
    # The mark between labels in one cell, by which the reader of tables divides them again.
    if is_table(answering.output) and names is not None and any(";" in one for one in names):
        raise ValueError("a label has ';' in its name: write a .jsonl file")
    answering.tell(
        _predicted(pipeline, items),
        cells=lambda record: [{**record, "labels": ";".join(record["labels"])}],
        head=("item", "labels"),
        shown=lambda record: (record["id"], ", ".join(record["labels"]) or "-"),
    )


def _predicted(pipeline: Any, items: Dataset) -> Iterator[Record]:
    import numpy as np
    from scipy import sparse

    model = pipeline[-1]
    for names, X, progress in blocks(pipeline, items, "predicting"):
        decided = model.predict(X, progress=progress)
        if isinstance(model.classes_, np.ndarray):  # y was one column of two classes
            decided = (decided == model.classes_[1])[:, None]
        sets = sparse.csr_array(decided)
        sets.sort_indices()
        for name, start, stop in zip(names, sets.indptr[:-1], sets.indptr[1:], strict=True):
            labels = sets.indices[start:stop].tolist()
            yield {"id": name, "labels": [label_name(model, label) for label in labels]}
