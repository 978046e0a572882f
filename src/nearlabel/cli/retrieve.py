"""retrieve."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from nearlabel.cli.file_answers import Answering, Blocks, Record
from nearlabel.cli.model_items import check_keeps_items
from nearlabel.cli.open_collections import (
    asked,
    is_collection,
    item_tile,
    open_collection,
    query_tile,
)
from nearlabel.cli.options import Count, DataOrPictures, as_typed
from nearlabel.cli.output import (
    check_results,
    check_target,
    counted,
    file_size,
    printable,
    say,
    say_json,
    say_table,
)

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

    from nearlabel.collection import Collection
    from nearlabel.collection.queries import Query

_PAGES = (".html", ".htm")


def retrieve(
    model: str,
    /,
    *data: DataOrPictures,
    top: Count = 5,
    per_tag: Count = 8,
    html: Annotated[str | None, Parameter(metavar="FILE")] = None,
    answering: Answering = Answering(),
) -> None:
    """Find the items most similar to an item, grouped by its likeliest tags.

    For each of these tags, the nearest items that carry it are listed (Zhang, Kiranyaz and Gabbouj,
    2017). An item of a collection is treated as if it were new.

    Parameters
    ----------
    model
        Folder of a collection, as created by index, or model file, as written by fit.
    top
        Number of tags per item.
    per_tag
        Number of items per tag.
    html
        Write a contact sheet, a page that contains the pictures. For collections only.

    Examples
    --------
    nearlabel retrieve photos.nearlabel new.jpg
    nearlabel retrieve photos.nearlabel new.jpg --html new.html
    nearlabel retrieve songs.model new.csv --top 2 --per-tag 3
    """
    if not is_collection(model):
        if html is not None:
            raise ValueError(f"--html is only for collections, and {model} is not one")
        fitted, blocks = answering.load(model, data, "retrieve")
        check_keeps_items(fitted, model, "retrieve")
        groups = _of_model(fitted, blocks, top, per_tag)
        _tell(answering, groups, ("label", "score"), blocks.skipped)
        return
    if not data:
        example = "nearlabel retrieve photos.nearlabel new.jpg"
        raise ValueError(f"retrieve: PICTURE is missing; for example: {example}")
    unused = [*as_typed(answering.reading), *as_typed(replace(answering.searching, jobs=None))]
    for word in [*unused, *(["--part"] if answering.part != "all" else [])][:1]:
        raise ValueError(f"{word}: this does not apply to {model}, which is a collection")
    check_results(answering.output, *data)
    if html is not None:
        if Path(html).suffix.lower() not in _PAGES:
            raise ValueError(f"--html must end in {' or '.join(_PAGES)}; got {html}")
        check_target("--html", html, *data)
    with open_collection(model, readonly=True) as store:
        queries = asked(store, data, answering.searching.jobs)
        records = [_of_collection(store, query, top, per_tag) for query in queries]
        if html is not None:
            _write_sheet(store, queries, records, html)
    if html is None or answering.output is not None:
        _tell(answering, records, ("tag", "probability"))
    elif answering.json:
        say_json({"html": html, "items": records})
    else:
        say(f"wrote {html} ({file_size(html)}, {counted(len(records), 'item')})")


def _tell(
    answering: Answering, records: Iterable[Record], words: tuple[str, str], skipped: Any = None
) -> None:
    """Write or print groups; `words` are the names of their tags and probabilities."""
    tag, score = words
    if answering.output is None and not answering.json:
        _say(records, tag, score)
        return
    answering.tell(
        records,
        cells=lambda record: [
            {
                "id": record["id"],
                "name": record["name"],
                "rank": rank,
                tag: group[tag],
                score: group[score],
                "item": item["id"],
                "item_name": item["name"],
                "distance": item["distance"],
            }
            for rank, group in enumerate(record["groups"], 1)
            for item in group["items"]
        ],
        head=("item", "groups"),
        shown=lambda record: (record["name"], ""),
        skipped=skipped,
    )


def _say(records: Iterable[Record], tag: str, score: str) -> None:
    """Print a table for each item."""
    for number, record in enumerate(records):
        if number:
            say()
        say(printable(record["name"]))
        rows = [
            (
                group[tag],
                f"{group[score]:.3f}",
                ", ".join(f"{near['name']} at {near['distance']:.3f}" for near in group["items"]),
            )
            for group in record["groups"]
        ]
        if rows:
            say_table((tag, score, "nearest items that carry it"), rows, numbers=False)
        else:
            say("  no suggestions: too little has been tagged yet")


def _of_model(model: BaseEstimator, blocks: Blocks, top: int, per_tag: int) -> Iterator[Record]:
    """The groups of each item, by a model."""
    for names, X, progress in blocks("retrieving"):
        answers = model.retrieve(X, top, per_tag)
        for name, groups in zip(names, answers, strict=True):
            tagged = [
                {
                    "label": str(group.name),
                    "score": group.score,
                    "items": [
                        {"id": id, "name": str(id), "distance": distance}
                        for id, distance in zip(
                            group.ids.tolist(), group.distances.tolist(), strict=True
                        )
                    ],
                }
                for group in groups
            ]
            yield {"id": name, "name": str(name), "groups": tagged}
        progress(len(names), len(names))


def _of_collection(store: Collection, query: Query, top: int, per_tag: int) -> Record:
    """The groups of an item, by a collection."""
    with store.snapshot():
        groups = store.retrieve(query.question, top, per_tag)
        near = store.items_of([id for group in groups for id, _ in group.items])
    tagged = [
        {
            "tag": group.tag,
            "probability": group.probability,
            "items": [
                {"id": id, "name": near[id].shown_name, "distance": distance}
                for id, distance in group.items
            ],
        }
        for group in groups
    ]
    return {**query.record, "groups": tagged}


def _write_sheet(
    store: Collection, queries: Sequence[Query], records: Sequence[Record], path: str
) -> None:
    """Write the page with the groups of all items."""
    from nearlabel.collection.contact_sheets import AnsweredItem, TagRow, contact_sheet
    from nearlabel.common.files import replacing

    answered = []
    for query, record in zip(queries, records, strict=True):
        has = set() if query.item is None else {*query.item.yes}
        rows = [
            TagRow(
                group["tag"],
                group["probability"],
                [
                    item_tile(store, store.item(item["id"]), f"distance {item['distance']:.3f}")
                    for item in group["items"]
                ],
                group["tag"] in has,
            )
            for group in record["groups"]
        ]
        answered.append(AnsweredItem(query_tile(store, query), rows))
    nearest = f"the nearest {store.settings.kind} that carry it"
    about = f"{counted(len(answered), 'item')}, and for each of the likeliest tags {nearest}"
    with replacing(path) as file:
        file.write(contact_sheet(store.path.absolute().name, about, answered).encode())
