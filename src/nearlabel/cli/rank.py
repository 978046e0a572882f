"""rank."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from nearlabel.cli.file_answers import Answering, Answers, Record
from nearlabel.cli.options import Count, Data, Switch
from nearlabel.cli.output import WIDTH, printable, say

_ANSWERING = Answering()


def rank(
    model: str,
    data: Data,
    *,
    top: Count = 5,
    why: Switch = False,
    answering: Answering = _ANSWERING,
) -> None:
    """Rank the labels of items, best first.

    Parameters
    ----------
    model
        File that fit wrote.
    top
        Labels an item.
    why
        Tell the neighbors that voted, nearest first, and the score without each of them.

    Examples
    --------
    nearlabel rank songs.model new.csv --top 3
    nearlabel rank songs.model new.csv --id title --why
    nearlabel rank yeast.model yeast --part test -o ranked.csv
    """
    if why and answering.in_cells:
        raise ValueError("--why has no place in a table: write a .jsonl file")
    answers = Answers(model, data, answering)
    if why and answering.output is None and not answering.json:
        for name, explanation in answers.explained(top):
            _say_why(name, explanation)
        return
    answering.tell(
        _explained(answers, top) if why else answers.ranked(top),
        cells=lambda record: [
            {"id": record["id"], "rank": place, **scored}
            for place, scored in enumerate(record["labels"], 1)
        ],
        head=("item", "labels with their scores"),
        shown=lambda record: (record["id"], ", ".join(map(_shown, record["labels"]))),
    )


def _shown(label: Record) -> str:
    return f"{label['label']} {round(label['score'], 3) + 0.0:.3f}"  # no minus before zero


def _explained(answers: Answers, top: int) -> Iterator[Record]:
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
