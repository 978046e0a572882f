"""retrieve."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from nearlabel.cli.file_answers import Answering, Blocks, Record
from nearlabel.cli.model_items import check_keeps_items
from nearlabel.cli.open_collections import asked, is_collection, open_collection, tags_text
from nearlabel.cli.options import Count, DataOrPictures, Required, as_typed
from nearlabel.cli.output import (
    Block,
    Table,
    check_results,
    check_target,
    counted,
    file_size,
    printable,
    render,
)

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

    from nearlabel.collection import Collection, Item
    from nearlabel.collection.contact_sheets import Tile
    from nearlabel.collection.queries import Query
    from nearlabel.collection.records import TaggedItems

_PAGES = (".html", ".htm")


def retrieve(
    model: str,
    /,
    *data: Annotated[DataOrPictures, Required],
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
        fitted, blocks = answering.load(model, data)
        check_keeps_items(fitted, model, "retrieve")
        groups = _of_model(fitted, blocks, top, per_tag)
        _tell(answering, groups, "label", "score", blocks.skipped)
        return
    _check(model, data, html, answering)
    with open_collection(model, readonly=True) as store:
        queries = asked(store, data, answering.searching.jobs)
        with store.snapshot():
            answers = [(query, store.retrieve(query.question, top, per_tag)) for query in queries]
            ids = {id for _, groups in answers for group in groups for id, _ in group.items}
            near = store.items_of([*ids])
        if html is not None:
            _write_sheet(store, answers, near, html)
    records = [
        {
            **query.record,
            "groups": [
                {
                    **group._asdict(),
                    "items": [
                        {"id": id, "name": near[id].shown_name, "distance": distance}
                        for id, distance in group.items
                    ],
                }
                for group in groups
            ],
        }
        for query, groups in answers
    ]
    if html is None or answering.output is not None:
        _tell(answering, records, "tag", "probability")
    else:
        text = f"wrote {html} ({file_size(html)}, {counted(len(records), 'item')})"
        render({"html": html, "items": records}, text, answering.json)


def _check(path: str, data: Sequence[str], html: str | None, answering: Answering) -> None:
    """Refuse options that are for models, and files that cannot be written."""
    unused = [*as_typed(answering.reading), *as_typed(replace(answering.searching, jobs=None))]
    for word in [*unused, *(["--part"] if answering.part != "all" else [])][:1]:
        raise ValueError(f"{word}: this does not apply to {path}, which is a collection")
    check_results(answering.output, *data)
    if html is not None:
        if Path(html).suffix.lower() not in _PAGES:
            raise ValueError(f"--html must end in {' or '.join(_PAGES)}; got {html}")
        check_target("--html", html, *data)


def _tell(
    answering: Answering,
    records: Iterable[Record],
    tag: str,
    score: str,
    skipped: Sequence[tuple[str, str]] | None = None,
) -> None:
    """Write or print groups, whose tags and probabilities have these names."""
    answering.deliver(
        records,
        lambda record: [
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
        _text(records, tag, score),
        skipped,
    )


def _text(records: Iterable[Record], tag: str, score: str) -> Iterator[Block]:
    """A table for each item."""
    for number, record in enumerate(records):
        yield "\n" * (number > 0) + printable(record["name"])
        rows = [
            (
                group[tag],
                f"{group[score]:.3f}",
                ", ".join(f"{near['name']} at {near['distance']:.3f}" for near in group["items"]),
            )
            for group in record["groups"]
        ]
        if rows:
            yield Table((tag, score, "nearest items that carry it"), rows, numbers=False)
        else:
            yield "  no suggestions: too little has been tagged yet"


def _of_model(model: BaseEstimator, blocks: Blocks, top: int, per_tag: int) -> Iterator[Record]:
    """The groups of each item, by a model."""
    for names, X, progress in blocks("retrieving"):
        answers = model.retrieve(X, top, per_tag)
        for name, groups in zip(names, answers, strict=True):
            tagged = []
            for group in groups:
                near = zip(group.ids.tolist(), group.distances.tolist(), strict=True)
                items = [{"id": id, "name": str(id), "distance": distance} for id, distance in near]
                tagged.append({"label": str(group.name), "score": group.score, "items": items})
            yield {"id": name, "name": str(name), "groups": tagged}
        progress(len(names), len(names))


def _write_sheet(
    store: Collection,
    answers: Sequence[tuple[Query, Sequence[TaggedItems]]],
    near: Mapping[int, Item],
    path: str,
) -> None:
    """Write the page with the groups of all items."""
    from nearlabel.collection.contact_sheets import AnsweredItem, TagRow, contact_sheet
    from nearlabel.collection.queries import query_of
    from nearlabel.common.files import replacing

    answered = []
    for query, groups in answers:
        has = set() if query.item is None else {*query.item.yes}
        rows = [
            TagRow(
                group.tag,
                group.probability,
                [
                    _tile(store, query_of(near[id]), f"distance {distance:.3f}")
                    for id, distance in group.items
                ],
                group.tag in has,
            )
            for group in groups
        ]
        note = "" if query.item is None else tags_text(query.item)
        answered.append(AnsweredItem(_tile(store, query, note), rows))
    nearest = f"the nearest {store.kind} that carry it"
    about = f"{counted(len(answered), 'item')}, and for each of the likeliest tags {nearest}"
    with replacing(path) as file:
        file.write(contact_sheet(store.path.absolute().name, about, answered).encode())


def _tile(store: Collection, query: Query, note: str) -> Tile:
    """How an item, or a file that was asked about, looks on a page."""
    from nearlabel.collection.contact_sheets import Tile
    from nearlabel.collection.thumbnails import thumbnail

    item, picture, text = query.item, None, ""
    files = [] if query.file is None else [Path(query.file)]
    if item is not None:
        files, text = [Path(file.root, file.path) for file in item.files], item.text or ""
    if store.kind == "pictures":
        try:
            picture = thumbnail(store.path, query.content, files, readonly=True)
        except (OSError, ValueError):
            is_there = any(map(Path.is_file, files))
            text = "the file cannot be shown" if is_there else "the file is missing"
    return Tile(query.name, picture, note, text)
