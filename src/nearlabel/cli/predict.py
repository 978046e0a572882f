"""predict."""

from __future__ import annotations

from nearlabel.cli.file_answers import Answering, Answers
from nearlabel.cli.options import Data

_ANSWERING = Answering()


def predict(model: str, data: Data, *, answering: Answering = _ANSWERING) -> None:
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
    answers = Answers(model, data, answering)
    mark = answers.separator() if answering.in_cells else ""
    answering.tell(
        answers.predicted(),
        cells=lambda record: [{**record, "labels": mark.join(record["labels"])}],
        head=("item", "labels"),
        shown=lambda record: (record["id"], ", ".join(record["labels"]) or "-"),
    )
