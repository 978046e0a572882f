"""predict."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

from nearlabel.cli.file_answers import Answering, Blocks, Record
from nearlabel.cli.model_items import label_name
from nearlabel.cli.options import DataOrPictures, Required
from nearlabel.cli.output import Table

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator


def predict(
    model: str, /, *data: Annotated[DataOrPictures, Required], answering: Answering = Answering()
) -> None:
    """Predict the labels of items.

    Columns are matched by name; columns unknown to the model are ignored.

    Parameters
    ----------
    model
        Model file, as written by fit.

    Examples
    --------
    nearlabel predict songs.model new.csv
    nearlabel predict songs.model new.csv -o tagged.csv
    cat new.jsonl | nearlabel predict songs.model - --json
    nearlabel predict scenes.model photos -o tagged.csv
    """
    fitted, blocks = answering.load(model, data)
    names = fitted.label_names_
    # The mark between labels in one cell, by which the reader of tables divides them again.
    if answering.is_table and names is not None and any(";" in name for name in names):
        raise ValueError("a label has ';' in its name: write a .jsonl file, or use --json")
    records = _predicted(fitted, blocks)
    shown = ((record["id"], ", ".join(record["labels"]) or "-") for record in records)
    answering.deliver(
        records,
        lambda record: [{**record, "labels": ";".join(record["labels"])}],
        Table(("item", "labels"), shown, numbers=False),
        blocks.skipped,
    )


def _predicted(model: BaseEstimator, blocks: Blocks) -> Iterator[Record]:
    for names, X, progress in blocks("predicting"):
        sets = model.label_matrix(model.predict(X, progress=progress))
        for name, start, stop in zip(names, sets.indptr[:-1], sets.indptr[1:], strict=True):
            labels = sets.indices[start:stop].tolist()
            yield {"id": name, "labels": [label_name(model, label) for label in labels]}
