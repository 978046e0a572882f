"""The page for people: each view is a template, filled with the answers of the interface."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Form, Query, Request
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.responses import HTMLResponse, RedirectResponse, Response

from nearlabel.app import api_answers as answers
from nearlabel.app import api_models as models
from nearlabel.app.api_routes import Body, Few, ItemId, Service
from nearlabel.app.asked_queries import answered, query_about
from nearlabel.app.logins import SECONDS, cookie_name, cookie_of, is_token
from nearlabel.app.responses import Refusal
from nearlabel.app.served import Served
from nearlabel.app.visible_names import visible
from nearlabel.collection.choices import METHODS, NO_IN_A_ROW, State, Strategy
from nearlabel.collection.folder_checks import NotInCollectionError
from nearlabel.collection.queries import Query as Asked
from nearlabel.collection.records import summary_of
from nearlabel.collection.thumbnails import THUMBNAIL_SIZE

ITEMS_A_PAGE = 120
_UNDO_UNASKED = 50  # largest number of items undone without confirmation
_PREVIEW = 1280  # pixels of the longer side

router = APIRouter(default_response_class=HTMLResponse)
_templates = Environment(
    loader=FileSystemLoader(Path(__file__).with_name("templates")),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_templates.filters["visible"] = visible
Tag = Annotated[str, Query(max_length=1000)]


def _address(path: str, **query: object) -> str:
    """An address with its nonempty parameters."""
    given = {name: value for name, value in query.items() if value not in (None, "", "all")}
    return f"{path}?{urlencode(given)}" if given else path


_templates.globals["address"] = _address


@router.get("/")
def grid(
    served: Service,
    tag: Tag = "",
    name: Annotated[str, Query(max_length=1000)] = "",
    state: State = "all",
    after: Annotated[int, Query(ge=0, le=models.MOST_ID)] = 0,
) -> HTMLResponse:
    """The items of the collection."""
    collection = served.collection
    with collection.snapshot(learned=False):
        page, missing = [], ""
        try:
            page = collection.items(tag or None, state, after, ITEMS_A_PAGE + 1, name=name or None)
        except NotInCollectionError as error:
            missing = f"The collection {error.reason}"
        items = [answers.described(served, item) for item in page[:ITEMS_A_PAGE]]
        is_filtered = bool(tag or name or state != "all") and not missing
        total = len(collection.ids(tag or None, state, name=name or None)) if is_filtered else None
        return _page(
            served,
            "grid.html",
            total=total,
            items=items,
            following=items[-1].id if len(page) > ITEMS_A_PAGE else None,
            after=after,
            tag=tag,
            name=name,
            state=state,
            missing=missing,
        )


@router.get("/items/{id}")
def item_page(served: Service, id: ItemId) -> HTMLResponse:
    """One item, with its tags and suggestions."""
    with served.answering():
        query = query_about(served, id)
        return _answer_page(served, query)


@router.post("/ask")
async def ask(served: Service, body: Body) -> HTMLResponse:
    """Suggestions for a file that was dropped on the page."""
    return await answered(served, body, lambda query, _: _answer_page(served, query))


@router.get("/items/{id}/near")
def near(served: Service, id: ItemId) -> HTMLResponse:
    """The items near one, by tag and overall: fetched after the rest of its page."""
    with served.answering():
        return _near(served, query_about(served, id))


@router.post("/near")
async def near_file(served: Service, body: Body) -> HTMLResponse:
    """The same for a file that was dropped on the page."""
    return await answered(served, body, lambda query, _: _near(served, query))


@router.get("/review")
def review(
    served: Service,
    strategy: Strategy = "mixed",
    tag: Tag = "",
    threshold: Annotated[float, Query(ge=0, le=1)] = 0.5,
    without: Annotated[list[int], Query(max_length=1000)] = [],  # noqa: B006
) -> HTMLResponse:
    """Questions about items without tags, or about one tag."""
    with served.answering():
        questions, missing = [], ""
        try:
            n = 24 if tag else 6  # tiles of one tag, or rows with several tags each
            questions = answers.questions(served, n, strategy, tag or None, without)
            for question in questions:  # unlikely tags need not be rejected
                question.suggestions = [
                    each
                    for place, each in enumerate(question.suggestions)
                    if place < 3 or each.probability >= 0.1
                ]
        except NotInCollectionError as error:
            missing = f"The collection {error.reason}"
        return _page(
            served,
            "review.html",
            questions=questions,
            strategy=strategy,
            tag=tag,
            threshold=threshold,
            missing=missing,
            no_in_a_row=NO_IN_A_ROW,
        )


@router.get("/tags")
def tag_list(
    served: Service,
    q: Tag = "",
    sort: Annotated[str, Query(pattern="^(name|count)$")] = "count",
    offset: Annotated[int, Query(ge=0, le=models.MOST_ID)] = 0,
) -> HTMLResponse:
    """The vocabulary."""
    with served.collection.snapshot(learned=False):
        size = 200
        tags, total = answers.tag_page(served, q, sort, offset, size)
        return _page(
            served,
            "tags.html",
            tags=tags,
            total=total,
            q=q,
            sort=sort,
            offset=offset,
            size=size,
        )


@router.get("/changes")
def change_list(served: Service, limit: Few = 50) -> HTMLResponse:
    """The changes, latest first."""
    with served.collection.snapshot(learned=False):
        changes = answers.changes(served, limit)
        following = {change.number for change in served.collection.next_undo()}
        return _page(served, "changes.html", changes=changes, following=following, limit=limit)


@router.get("/settings")
def settings_page(served: Service) -> HTMLResponse:
    """How the collection learns."""
    with served.collection.snapshot(learned=False):
        return _page(served, "settings.html", settled=answers.settled(served), methods=METHODS)


@router.get("/thumbnails/{id}")
def thumbnail(served: Service, id: ItemId, request: Request) -> Response:
    """The thumbnail of an item."""
    return _picture(served, id, request, THUMBNAIL_SIZE)


@router.get("/previews/{id}")
def preview(served: Service, id: ItemId, request: Request) -> Response:
    """A larger picture of an item, encoded again so that only the pixels of its file are shown."""
    return _picture(served, id, request, _PREVIEW)


@router.get("/login")
def login_form(
    served: Service, target: Annotated[str, Query(alias="next", max_length=2000)] = "/"
) -> Response:
    """Ask for the token."""
    if served.settings.token is None:
        return RedirectResponse("/", 303)
    return _rendered("login.html", 200, target=target, is_wrong=False)


@router.post("/login")
def login(
    served: Service,
    request: Request,
    token: Annotated[str, Form(max_length=5000)],
    target: Annotated[str, Form(alias="next", max_length=2000)] = "/",
) -> Response:
    """Give a cookie to a browser that sends the token."""
    wanted = served.settings.token
    if wanted is None or not is_token(token.strip(), wanted):
        time.sleep(0.5)
        return _rendered("login.html", 401, target=target, is_wrong=True)
    # Only to a path of ours: // and \ would lead elsewhere.
    is_ours = target.startswith("/") and not target.startswith(("//", "/\\"))
    answer = RedirectResponse(target if is_ours else "/", 303)
    answer.set_cookie(
        cookie_name(request.headers),
        cookie_of(wanted, int(time.time()) + SECONDS),
        max_age=SECONDS,
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
    )
    return answer


def _answer_page(served: Served, query: Asked) -> HTMLResponse:
    """The page of a query."""
    has = set() if query.item is None else {*query.item.yes}
    suggestions = answers.suggestions(served, query, 10 + len(has))
    return _page(
        served,
        "item.html",
        item=None if query.item is None else answers.described(served, query.item),
        name=query.name,
        beside=(None, None) if query.item is None else served.collection.ids_beside(query.item.id),
        suggestions=[each for each in suggestions if each.tag not in has][:10],
        known={each.tag: each.probability for each in suggestions if each.tag in has},
        text=_text(served, query),
    )


def _near(served: Served, query: Asked) -> HTMLResponse:
    return _rendered(
        "near.html",
        200,
        groups=answers.groups(served, query, 5, 8),
        similar=answers.similar(served, query, 12),
        kind=served.kind,
    )


def _text(served: Served, query: Asked) -> str:
    """The text of an item, up to a readable length."""
    if query.item is None or served.kind != "texts":
        return ""
    most = 20_000  # characters
    try:
        content = served.collection.content(query.item.id)[: 4 * most]
    except FileNotFoundError:
        return query.item.text or ""
    return content.decode("utf-8-sig", "replace")[:most]


def _picture(served: Served, id: int, request: Request, size: int) -> Response:
    item = served.collection.item(id)
    if served.kind != "pictures":
        raise Refusal(404, "the items of this collection are not pictures")
    tag = f'"{item.content.hex()[:32]}-{size}"'
    headers = {"etag": tag}
    if request.url.query and item.content.hex().startswith(request.url.query):
        headers |= {"cache-control": "private, max-age=31536000, immutable"}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    try:
        jpeg = served.thumbnail(id, size)
    except FileNotFoundError:
        try:
            jpeg = served.thumbnail(id, THUMBNAIL_SIZE)  # possibly cached
        except FileNotFoundError:
            raise Refusal(404, "the file of this item is missing") from None
    return Response(jpeg, media_type="image/jpeg", headers=headers)


def _page(served: Served, template: str, **values: object) -> HTMLResponse:
    """A whole page, with the parts that all pages share."""
    run = served.collection.next_undo()
    return _rendered(
        template,
        200,
        title=served.collection.path.absolute().name.removesuffix(".nearlabel"),
        kind=served.kind,
        counts=served.totals().counts,
        undo=summary_of(run) if run else None,
        undo_number=run[0].number if run else None,
        undo_is_large=sum(change.items for change in run) > _UNDO_UNASKED,
        readonly=served.collection.readonly,
        view=template.removesuffix(".html"),
        most_bytes=served.settings.most_bytes,
        **values,
    )


def error_page(refusal: Refusal) -> HTMLResponse:
    """An error page for browsers."""
    message = refusal.detail[0].upper() + refusal.detail[1:].rstrip(".") + "."
    return _rendered("error.html", refusal.status_code, message=message)


def _rendered(template: str, status: int, **values: object) -> HTMLResponse:
    return HTMLResponse(_templates.get_template(template).render(values), status)
