"""predict."""

from __future__ import annotations

from nearlabel.cli.answers import Answers, write_answers
from nearlabel.cli.options import Data, Json, Output, Part
from nearlabel.cli.options.reading import Reading
from nearlabel.cli.options.searching import Searching
from nearlabel.cli.output import say_json, say_table
from nearlabel.cli.result_files import is_table

_READING, _SEARCHING = Reading(), Searching()


def predict(
    model: str,
    data: Data,
    *,
    part: Part = "all",
    output: Output = None,
    json: Json = False,
    searching: Searching = _SEARCHING,
    reading: Reading = _READING,
) -> None:
    """Decide the labels of items.

    Columns are found by name; those that the model does not know are passed over.

    Parameters
    ----------
    model
        File that fit wrote.
    part
        Rows to be labelled, where the data set has a split.
    output
        Write a .csv, .tsv or .jsonl file instead of a table.

    Examples
    --------
    nearlabel predict songs.model new.csv
    nearlabel predict songs.model new.csv -o tagged.csv
    cat new.jsonl | nearlabel predict songs.model - --json
    """
    answers = Answers(model, data, part, reading, searching, output)
    records = ({"id": name, "labels": labels} for name, labels in answers.predicted())
    if output is not None and is_table(output):
        mark = answers.separator()
        cells = ({**record, "labels": mark.join(record["labels"])} for record in records)
        write_answers(output, cells, json)
    elif output is not None:
        write_answers(output, records, json)
    elif json:
        say_json(list(records))
    else:
        rows = [(record["id"], ", ".join(record["labels"]) or "-") for record in records]
        say_table(("item", "labels"), rows, numbers=False)
