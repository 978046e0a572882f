"""The interface for programs: JSON in and out."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi import Path as InAddress
from starlette.concurrency import run_in_threadpool

import nearlabel
from nearlabel.app import api_answers as answers
from nearlabel.app import api_models as models
from nearlabel.app.asked_queries import (
    Posted,
    answered,
    body_of,
    posted,
    vector_of,
)
from nearlabel.app.responses import ERRORS, Refusal
from nearlabel.app.served import Served
from nearlabel.app.uploads import (
    StoredItem,
    kept_file,
    kept_vector,
    other_kind,
)
from nearlabel.collection.choices import State, Strategy
from nearlabel.collection.learning_methods import with_other
from nearlabel.collection.queries import Query as Asked
from nearlabel.collection.records import summary_of
from nearlabel.collection.tag_names import tag_names

router = APIRouter(prefix="/api", responses=ERRORS)

ItemId = Annotated[int, InAddress(ge=1, le=models.MOST_ID)]
Few = Annotated[int, Query(ge=1, le=1000)]
Body = Annotated[Posted, Depends(posted)]


def served_by(request: Request) -> Served:
    """What the application serves."""
    served: Served = request.app.state.served
    return served


Service = Annotated[Served, Depends(served_by)]


@router.get("/health", tags=["service"])
async def health(served: Service) -> models.Health:
    """Check whether the service is running. Needs no token."""
    status: Literal["ok", "starting"] = "ok" if served.is_ready else "starting"
    return models.Health(status=status, version=nearlabel.__version__)


@router.get("/settings", tags=["service"])
def settings(served: Service) -> models.Settled:
    """Describe the collection and how it learns."""
    with served.collection.snapshot(learned=False):
        return answers.settled(served)


@router.put("/settings", tags=["service"])
def change_settings(served: Service, change: models.MethodChange) -> models.Settled:
    """Choose the method and the number of neighbors. The next answer waits for the learning."""
    collection = served.collection

    def work() -> models.Settled:
        method = collection.settings.method
        collection.set_method(with_other(method, change.method, change.n_neighbors))
        return answers.settled(served)

    return collection.together(work)


# Suggestions.


@router.post("/tag", tags=["suggestions"], openapi_extra=body_of("ItemQuery"))
async def tag(served: Service, body: Body, top: Few = 10) -> models.Suggestions:
    """Suggest tags for an item of the collection, or for a picture, a text or a vector.

    Nothing is stored. An item of the collection is answered as if it were new.
    """

    def answer(query: Asked, wanted: int | None) -> models.Suggestions:
        suggestions = answers.suggestions(served, query, wanted or top)
        return models.Suggestions(**query.record, suggestions=suggestions)

    return await answered(served, body, answer)


@router.post("/retrieve", tags=["suggestions"], openapi_extra=body_of("ItemQuery"))
async def retrieve(served: Service, body: Body, top: Few = 5, per_tag: Few = 8) -> models.Groups:
    """Find the nearest items for each of the most probable tags."""

    def answer(query: Asked, wanted: int | None) -> models.Groups:
        groups = answers.groups(served, query, wanted or top, per_tag)
        return models.Groups(**query.record, groups=groups)

    return await answered(served, body, answer)


@router.post("/similar", tags=["suggestions"], openapi_extra=body_of("ItemQuery"))
async def similar(served: Service, body: Body, top: Few = 12) -> models.Similar:
    """Find the nearest items, regardless of their tags."""

    def answer(query: Asked, wanted: int | None) -> models.Similar:
        neighbors = answers.similar(served, query, wanted or top)
        return models.Similar(**query.record, items=neighbors)

    return await answered(served, body, answer)


@router.get("/questions", tags=["suggestions"])
def questions(
    served: Service,
    limit: Annotated[int, Query(ge=1, le=100)] = 5,
    strategy: Strategy = "mixed",
    tag: models.Tag | None = None,
    without: Annotated[list[models.Number], Query(max_length=1000)] = [],  # noqa: B006
) -> models.Questions:
    """Choose items that a person should be asked about next."""
    with served.answering():
        questions = answers.questions(served, limit, strategy, tag, without)
    return models.Questions(questions=questions)


# Items.


@router.get("/items", tags=["items"])
def items(
    served: Service,
    tag: Annotated[models.Tag | None, Query(description="only items that have this tag")] = None,
    name: Annotated[str | None, Query(max_length=1000)] = None,
    state: State = "all",
    after: Annotated[int, Query(ge=0, le=models.MOST_ID)] = 0,
    limit: Few = 100,
) -> models.ItemPage:
    """List items, ordered by id."""
    with served.collection.snapshot(learned=False):
        items = served.collection.items(tag, state, after, limit + 1, name=name)
    page = [answers.described(served, item) for item in items[:limit]]
    return models.ItemPage(items=page, next=page[-1].id if len(items) > limit else None)


@router.post(
    "/items",
    tags=["items"],
    status_code=201,
    openapi_extra=body_of("NewContent"),
    responses={200: {"model": models.AddedItem, "description": "The item existed already."}},
)
async def add_item(served: Service, body: Body, response: Response) -> models.AddedItem:
    """Add a picture, a text or a vector, optionally with tags.

    Content that the collection already has is not added again: the existing item gets the tags.
    """

    def work() -> models.AddedItem:
        new = None if body.json is None else models.NewContent.model_validate_json(body.json)
        tags = tag_names(body.tags if new is None else new.tags)  # before anything is stored
        if new is None:
            keep = kept_file(served, body.content, body.name)
        elif served.kind == "vectors" and new.vector is not None and new.text is None:
            keep = kept_vector(served, vector_of(served, new.vector), new.name)
        elif served.kind == "texts" and new.text is not None and new.vector is None:
            keep = kept_file(served, new.text.encode(), new.name)
        else:
            raise other_kind(served)

        def changes() -> StoredItem:
            group = served.collection.new_group()
            stored = keep(group)
            if tags:
                served.collection.tag(stored.id, tags, group=group)
            return stored

        stored = served.collection.together(changes)
        item = answers.described(served, served.collection.item(stored.id))
        return models.AddedItem(id=stored.id, is_new=stored.is_new, item=item)

    added = await run_in_threadpool(work)
    response.status_code = 201 if added.is_new else 200
    return added


@router.get("/items/{id}", tags=["items"])
def item(served: Service, id: ItemId) -> models.Described:
    """Get one item."""
    return answers.described(served, served.collection.item(id))


@router.delete("/items/{id}", tags=["items"])
def forget_item(served: Service, id: ItemId) -> models.ChangeDone:
    """Forget an item for good: this cannot be undone. Only uploaded files are deleted."""
    return answers.done(served, served.collection.forget(id), [])


@router.get("/items/{id}/tags", tags=["items"])
def item_tags(served: Service, id: ItemId) -> models.Described:
    """Get one item with its tags."""
    return item(served, id)


@router.post("/items/{id}/tags", tags=["items"])
def change_tags(served: Service, id: ItemId, change: models.TagChange) -> models.ChangeDone:
    """Give tags to an item, reject tags for it, or make them undecided."""
    return _decided(served, answers.decisions_of([id], change))


@router.post("/decisions", tags=["items"])
def decide(served: Service, change: models.Decisions) -> models.ChangeDone:
    """Give or reject tags for many items in one change, which is undone as one."""
    return _decided(served, answers.decisions_of(dict.fromkeys(change.ids), change))


@router.post("/answers", tags=["suggestions"])
def answer(served: Service, given: models.Answers) -> models.ChangeDone:
    """Answer questions in one change, which is undone as one."""
    decided = answers.answered(given.answers)
    if not decided:
        raise Refusal(422, "answers: at least one of accepted, tags and no is required")
    return _decided(served, decided)


# Tags and changes.


@router.get("/tags", tags=["tags"])
def tags(
    served: Service,
    q: Annotated[str, Query(max_length=1000, description="only tags that contain this")] = "",
    sort: Literal["name", "count"] = "count",
    offset: Annotated[int, Query(ge=0, le=models.MOST_ID)] = 0,
    limit: Few = 100,
) -> models.TagPage:
    """List the tags, with the number of items that have them."""
    page, total = answers.tag_page(served, q, sort, offset, limit)
    counted = [models.Counted(name=tag.name, yes=tag.yes, no=tag.no) for tag in page]
    return models.TagPage(tags=counted, total=total)


@router.post("/tags/rename", tags=["tags"])
def rename(served: Service, change: models.Renaming) -> models.ChangeDone:
    """Rename a tag and all levels below it."""
    return answers.done(served, served.collection.rename_tag(change.old, change.new), [])


@router.post("/tags/merge", tags=["tags"])
def merge(served: Service, change: models.Merging) -> models.ChangeDone:
    """Merge several tags into one. Where they disagree on an item, yes wins over no."""
    return answers.done(served, served.collection.merge_tags(change.tags, change.into), [])


@router.post("/tags/delete", tags=["tags"])
def delete(served: Service, change: models.Deleting) -> models.ChangeDone:
    """Remove a tag from all items. Tags below it stay."""
    return answers.done(served, served.collection.delete_tag(change.tag), [])


@router.get("/changes", tags=["changes"])
def changes(served: Service, limit: Few = 20) -> models.Changes:
    """List the last changes, latest first."""
    return models.Changes(changes=answers.changes(served, limit))


@router.post("/undo", tags=["changes"])
def undo(served: Service, wanted: models.Undoing | None = None) -> models.Undone:
    """Undo the last change; called again, the one before it."""
    collection = served.collection

    def work() -> models.Changed | None:
        if wanted is not None:
            run = collection.next_undo()
            if wanted.change not in {change.number for change in run[:1]}:
                sentence = summary_of(run) or "nothing can be undone"
                raise Refusal(409, f"there is a later change by now ({sentence})", "changed_since")
        undone = collection.undo()
        return undone and answers.change_of(undone)

    return models.Undone(undone=collection.together(work))


def _decided(served: Served, decisions: answers.Decided) -> models.ChangeDone:
    change = served.collection.decide(decisions)
    return answers.done(served, change, (id for id, *_ in decisions))
