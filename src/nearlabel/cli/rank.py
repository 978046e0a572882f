"""rank."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from nearlabel.cli.answers import Answers, write_answers
from nearlabel.cli.options import Count, Data, Json, Output, Part, Switch
from nearlabel.cli.options.reading import Reading
from nearlabel.cli.options.searching import Searching
from nearlabel.cli.output import WIDTH, printable, say, say_json, say_table
from nearlabel.cli.result_files import is_table

_READING, _SEARCHING = Reading(), Searching()


def rank(
    model: str,
    data: Data,
    *,
    top: Count = 5,
    why: Switch = False,
    part: Part = "all",
    output: Output = None,
    json: Json = False,
    searching: Searching = _SEARCHING,
    reading: Reading = _READING,
) -> None:
    """Rank the labels of items, best first.

    Parameters
    ----------
    model
        File that fit wrote.
    top
        Labels an item.
    why
        Tell the neighbors that voted, nearest first, and the scores without each of them.
    part
        Rows to be ranked, where the data set has a split.
    output
        Write a .csv, .tsv or .jsonl file instead of a table.

    Examples
    --------
    nearlabel rank songs.model new.csv --top 3
    nearlabel rank songs.model new.csv --id title --why
    nearlabel rank yeast.model yeast --part test -o ranked.csv
    """
    in_cells = output is not None and is_table(output)
    if why and in_cells:
        raise ValueError("--why has no place in a table: write a .jsonl file")
    answers = Answers(model, data, part, reading, searching, output)
    if why and output is None and not json:
        for name, explanation in answers.explained(top):
            _say_why(name, explanation)
        return
    records = _explained(answers, top) if why else _ranked(answers, top)
    if output is not None:
        write_answers(output, _cells(records) if in_cells else records, json)
    elif json:
        say_json(list(records))
    else:
        shown = [(record["id"], ", ".join(map(_shown, record["labels"]))) for record in records]
        say_table(("item", "labels with their scores"), shown, numbers=False)


def _ranked(answers: Answers, top: int) -> Iterator[dict[str, Any]]:
    for name, labels in answers.ranked(top):
        yield {"id": name, "labels": labels}


def _explained(answers: Answers, top: int) -> Iterator[dict[str, Any]]:
    for name, explanation in answers.explained(top):
        labels = [
            {
                "label": str(one.name),
                "score": one.score,
                "predicted": one.predicted,
                "neighbors": [{"id": by.id, "distance": by.distance} for by in one.neighbors],
            }
            for one in explanation
        ]
        yield {"id": name, "labels": labels}


def _cells(records: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for record in records:
        for place, scored in enumerate(record["labels"], 1):
            yield {"id": record["id"], "rank": place, **scored}


def _shown(label: dict[str, Any]) -> str:
    return f"{label['label']} {round(label['score'], 3) + 0.0:.3f}"  # no minus before zero


def _say_why(name: Any, explanation: Any) -> None:
    """Print what the library prints of an explanation, in 80 columns."""
    labels = [
        replace(
            one,
            name=printable(one.name),
            neighbors=tuple(replace(by, id=printable(by.id)) for by in one.neighbors),
        )
        for one in explanation
    ]
    say(printable(name))
    for line in str(replace(explanation, labels=tuple(labels))).splitlines():
        say(textwrap.fill(f"  {line}", WIDTH, subsequent_indent=" " * 8))
