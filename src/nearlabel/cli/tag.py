"""tag."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from nearlabel.cli.open_collections import (
    Asked,
    asked,
    items_of,
    open_collection,
    said_tags,
    shown_name,
    told_item,
)
from nearlabel.cli.options import Count, Json, Switch, Texts, Whole
from nearlabel.cli.output import counted, printable, say, say_folded, say_json, say_table

if TYPE_CHECKING:
    from nearlabel.collection import Collection, Suggestion

_VOTERS_SHOWN = 3
_ITEMS_SHOWN = 10
_METRICS = {  # with what is better: less or more
    "hamming_loss": "↓",
    "one_error": "↓",
    "ranking_loss": "↓",
    "average_precision": "↑",
    "micro_f1": "↑",
}


def tag(
    collection: str,
    *picture: str,
    top: Count = 5,
    why: Switch = False,
    add: Texts = (),
    no: Texts = (),
    clear: Texts = (),
    truth: str | None = None,
    jobs: Whole | None = None,
    json: Json = False,
) -> None:
    """Suggest tags for pictures, with the neighbors that voted; or give tags.

    PICTURE is an item of the collection, by its id, its name or the path of its file, or any
    other file, or a folder. Suggestions leave out tags that an item was said not to have; an item
    of the collection is answered as if it were new. With --add, --no or --clear, tags are given
    instead: the collection learns from them at once.

    Parameters
    ----------
    collection
        Folder of a collection, as index makes it.
    top
        Tags per picture.
    why
        Show all neighbors that voted, with their distances and their parts in the probability.
    add
        Tags that the pictures have.
    no
        Tags that they do not have: these are never suggested again, and it is learned from, too.
    clear
        Tags about which nothing is decided any more.
    truth
        A table with the columns file and tags: say how well suggestions agree with it.
    jobs
        Threads that read pictures; -1 for all cores.

    Examples
    --------
    nearlabel tag photos.nearlabel new.jpg
    nearlabel tag photos.nearlabel rome/0017.jpg --add sea boats --no sunset
    nearlabel tag photos.nearlabel 17 18 19 --clear boats
    nearlabel tag photos.nearlabel new --truth truth.csv
    """
    given = {"--add": add, "--no": no, "--clear": clear}
    if not picture:
        example = "nearlabel tag photos.nearlabel new.jpg"
        raise ValueError(f"tag: PICTURE is missing; for example: {example}")
    if any(given.values()):
        _check_once(given)
        if truth is not None:
            raise ValueError("--truth compares suggestions: it cannot be given beside tags")
        _give(collection, picture, add, no, clear, json)
        return
    with open_collection(collection, readonly=True) as store:
        questions = asked(store, picture, jobs)
        if truth is not None:
            _compare(store, questions, truth, json)
        else:
            _suggest(store, questions, top, why, json)


def _check_once(given: Mapping[str, Sequence[str]]) -> None:
    """Refuse a tag that is given in two ways."""
    from nearlabel.common.messages import shown

    seen: dict[str, str] = {}
    for option, tags in given.items():
        for one in tags:
            if seen.setdefault(one, option) != option:
                raise ValueError(f"{shown(one)} is given by {seen[one]} and by {option}")


def _give(
    path: str,
    pictures: Sequence[str],
    add: Sequence[str],
    no: Sequence[str],
    clear: Sequence[str],
    json: bool,
) -> None:
    """Give tags to items."""
    given: list[tuple[str, bool | None]] = [(name, True) for name in add]
    given += [(name, False) for name in no]
    given += [(name, None) for name in clear]
    with open_collection(path) as store:
        ids = [item.id for item in items_of(store, pictures)]
        before = {one.name for one in store.tags()}
        store.decide([(item, name, answer) for item in ids for name, answer in given])
        items = [store.item(one) for one in ids]
        new = [one.name for one in store.tags() if one.name not in before]
    if json:
        say_json({"collection": path, "items": [*map(told_item, items)], "new_tags": new})
        return
    for item in items[:_ITEMS_SHOWN]:
        say_folded(printable(f"{shown_name(item)}: {said_tags(item)}"))
    if len(items) > _ITEMS_SHOWN:
        say(f"… and {counted(len(items) - _ITEMS_SHOWN, 'more item')}")
    if new:
        say_folded(printable(f"{'new tag' if len(new) == 1 else 'new tags'}: {', '.join(new)}"))


def _suggest(
    store: Collection, questions: Sequence[Asked], top: int, why: bool, json: bool
) -> None:
    """Print the likeliest tags of items."""
    answers = ((one, store.suggest(one.question, top)) for one in questions)
    if json:
        say_json(
            [
                {
                    **one.told,
                    "suggestions": [
                        {
                            "tag": suggestion.tag,
                            "probability": suggestion.probability,
                            "voters": [
                                {"name": shown_name(store.item(by.id)), **by._asdict()}
                                for by in suggestion.voters
                            ],
                        }
                        for suggestion in suggestions
                    ],
                }
                for one, suggestions in answers
            ]
        )
        return
    for number, (one, suggestions) in enumerate(answers):
        if number:
            say()
        say_folded(printable(one.headline))
        if not suggestions:
            say("  no suggestions: too little has been tagged yet")
        elif why:
            _say_why(store, suggestions)
        else:
            head = ("tag", "probability", "nearest neighbors that carry it")
            rows = [(one.tag, f"{one.probability:.3f}", _voters(store, one)) for one in suggestions]
            say_table(head, rows, numbers=False)


def _voters(store: Collection, suggestion: Suggestion) -> str:
    """The nearest of the neighbors that voted for a tag."""
    voters = suggestion.voters
    names = [
        f"{shown_name(store.item(by.id))} at {by.distance:.3f}" for by in voters[:_VOTERS_SHOWN]
    ]
    more = len(voters) - len(names)
    return ", ".join(names) + (f" and {more} more" if more else "") or "none"


def _say_why(store: Collection, suggestions: Sequence[Suggestion]) -> None:
    for one in suggestions:
        voted = f"{counted(len(one.voters), 'neighbor')} voted for it"
        say_folded(printable(f"  {one.tag} {one.probability:.3f}: {voted}"))
        for by in one.voters:
            place = f"item {by.id}, at {by.distance:.4g}, part {by.part:.4g}"
            say_folded(
                printable(f"      {shown_name(store.item(by.id))} ({place})"), indent=" " * 10
            )


def _compare(store: Collection, questions: Sequence[Asked], table: str, json: bool) -> None:
    """Print how well suggestions agree with the tags that a table has for the same files."""
    import numpy as np

    from nearlabel.collection.exchange.tag_tables import read_csv_tags
    from nearlabel.metrics import evaluate

    rows = read_csv_tags(table)
    by_path = {row.file: row.yes for row in rows}
    by_name = {Path(row.file).name: row.yes for row in rows}
    compared = []
    for one in questions:
        tags = by_path.get(one.name, by_name.get(Path(one.name).name))
        if tags is None:
            raise ValueError(f"--truth: {table} has no row for {one.name}")
        compared.append((one, tags))
    names = [one.name for one in store.tags() if one.yes]
    names += sorted({name for _, tags in compared for name in tags} - {*names})
    place = {name: column for column, name in enumerate(names)}
    Y = np.zeros((len(compared), len(names)), np.int8)
    scores = np.zeros(Y.shape)
    for row, (one, tags) in enumerate(compared):
        Y[row, [place[name] for name in tags]] = 1
        for suggestion in store.suggest(one.question, len(names)):
            scores[row, place[suggestion.tag]] = suggestion.probability
    found = evaluate(Y, scores, (scores >= 0.5).astype(np.int8))
    metrics = {name: None if np.isnan(found[name]) else float(found[name]) for name in _METRICS}
    if json:
        say_json({"items": len(compared), "tags": len(names), "metrics": metrics})
        return
    say(f"{counted(len(compared), 'item')} and {counted(len(names), 'tag')} compared with {table}")
    say_table(
        ("metric", "value"),
        [(f"{name} {mark}", f"{found[name]:.4f}") for name, mark in _METRICS.items()],
    )
