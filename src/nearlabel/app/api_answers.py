"""Answers of a collection in the form used by the interface and the page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

from nearlabel.app import api_models as models
from nearlabel.app.responses import Refusal
from nearlabel.app.served import Served
from nearlabel.collection import Change, Item, TagCount
from nearlabel.collection.queries import Query
from nearlabel.common.arrays import Tree
from nearlabel.common.messages import encodable

Decided = list[tuple[int, str, bool | None, str]]
_ITEMS_TOLD = 100  # listed in the answer to a change


def thumbnail_of(served: Served, item: Item) -> str | None:
    """The address of an item's thumbnail, which changes with its content."""
    if served.kind != "pictures":
        return None
    return f"/thumbnails/{item.id}?{item.content.hex()[:16]}"


def described(served: Served, item: Item) -> models.Described:
    """An item."""
    return models.Described(
        id=item.id,
        name=item.shown_name,
        tags=item.yes,
        accepted=[name for name in item.yes if item.tags[name].by == "suggestion"],
        no=item.no,
        is_missing=item.is_missing,
        text=item.text,
        files=[encodable(file.path) for file in item.files],
        sha256=item.content.hex(),
        thumbnail=thumbnail_of(served, item),
    )


def suggestions(served: Served, query: Query, top: int) -> list[models.Suggested]:
    """The most probable tags of the query, with the neighbors that voted."""
    suggested = served.collection.suggest(query.question, top)
    items = served.collection.items_of(
        [voter.id for suggestion in suggested for voter in suggestion.voters]
    )
    return [
        models.Suggested(
            tag=suggestion.tag,
            probability=suggestion.probability,
            voters=[
                models.VotingItem(**_near(served, items[by.id], by.distance), part=by.part)
                for by in suggestion.voters
                if by.id in items
            ],
        )
        for suggestion in suggested
    ]


def groups(served: Served, query: Query, top: int, per_tag: int) -> list[models.Group]:
    """For each of the most probable tags, the nearest items that have it."""
    groups = served.collection.retrieve(query.question, top, per_tag)
    items = served.collection.items_of([id for group in groups for id, _ in group.items])
    return [
        models.Group(
            tag=group.tag,
            probability=group.probability,
            items=_named(served, items, group.items),
        )
        for group in groups
    ]


def similar(served: Served, query: Query, n: int) -> list[models.NamedItem]:
    """The nearest items."""
    neighbors = served.collection.similar(query.question, n)
    items = served.collection.items_of([id for id, _ in neighbors])
    return _named(served, items, neighbors)


def questions(
    served: Served, n: int, strategy: str, tag: str | None, without: Iterable[int]
) -> list[models.Asking]:
    """Questions to a person."""
    questions = served.collection.questions(n, strategy, tag=tag, without=without)
    items = served.collection.items_of([question.item for question in questions])
    return [
        models.Asking(
            item=described(served, items[question.item]),
            why=question.why,
            suggestions=[
                models.Suggested(tag=each.tag, probability=each.probability, voters=[])
                for each in question.suggestions
            ],
        )
        for question in questions
        if question.item in items
    ]


def change_of(change: Change) -> models.Changed:
    """A change, and a description of what it did."""
    names = models.Changed.model_fields.keys() - {"said"}
    return models.Changed(**{name: getattr(change, name) for name in names}, said=change.summary)


def changes(served: Served, limit: int) -> list[models.Changed]:
    """The last changes."""
    return [change_of(change) for change in served.collection.changes(limit)]


def done(served: Served, change: Change | None, ids: Iterable[int]) -> models.ChangeDone:
    """The result of a change."""
    items = served.collection.items_of(sorted({*ids})[:_ITEMS_TOLD])
    return models.ChangeDone(
        change=change and change_of(change),
        items=[described(served, item) for item in items.values()],
    )


def decisions_of(ids: Iterable[int], change: models.TagChange) -> Decided:
    """The decisions of a request about some items."""
    listed = [
        (change.tags, True, change.by),
        (change.no, False, "person"),
        (change.clear, None, "person"),
    ]
    names = [name for tags, _, _ in listed for name in tags]
    if not names:
        raise Refusal(422, "at least one of tags, no and clear is required")
    if len({*names}) < len(names):
        raise Refusal(422, "a tag occurs twice")
    ids = [*ids]
    return [(id, tag, answer, by) for tags, answer, by in listed for tag in tags for id in ids]


def answered(answers: Iterable[models.Answer]) -> Decided:
    """The decisions in the answers to questions."""
    return [
        (answer.id, tag, is_yes, by)
        for answer in answers
        for tags, is_yes, by in (
            (answer.no, False, "person"),
            (answer.accepted, True, "suggestion"),
            (answer.tags, True, "person"),
        )
        for tag in tags
    ]


def tag_page(
    served: Served, q: str, sort: str, offset: int, limit: int
) -> tuple[list[TagCount], int]:
    """One page of the tags whose names contain a text, and their total number."""
    wanted = q.casefold()
    tags = [tag for tag in served.totals().tags if wanted in tag.name.casefold()]
    if sort == "count":
        tags.sort(key=lambda tag: (-tag.yes, tag.name.casefold()))
    else:
        tags.sort(key=lambda tag: (tag.name.casefold(), tag.name))
    if wanted:  # names that start with it are usually meant
        tags.sort(key=lambda tag: not tag.name.casefold().startswith(wanted))
    return tags[offset : offset + limit], len(tags)


def settled(served: Served) -> models.Settled:
    """The state of the collection, and how it learns."""
    settings, counts = served.collection.settings, served.totals().counts
    shown = ("items", "tagged", "untagged", "missing", "tags")
    return models.Settled(
        kind=cast("Any", settings.kind),
        features=str(settings.features.get("name", "")),
        method=str(settings.method["name"]),
        n_neighbors=int(settings.method.get("n_neighbors", 10)),
        metric=str(settings.method.get("metric", "euclidean")),
        width=settings.width,
        **{name: counts[name] for name in shown},
    )


def _near(served: Served, item: Item, distance: float) -> Tree:
    thumbnail = thumbnail_of(served, item)
    return {"id": item.id, "name": item.shown_name, "distance": distance, "thumbnail": thumbnail}


def _named(
    served: Served, items: Mapping[int, Item], neighbors: Iterable[tuple[int, float]]
) -> list[models.NamedItem]:
    return [
        models.NamedItem(**_near(served, items[id], distance))
        for id, distance in neighbors
        if id in items
    ]
