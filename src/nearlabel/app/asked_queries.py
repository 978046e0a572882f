"""What a request asks about or uploads: an item, a vector, a text, or the content of a file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

import numpy as np
from fastapi import Request
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile

from nearlabel.app.api_models import ItemQuery
from nearlabel.app.responses import Refusal
from nearlabel.app.served import Served
from nearlabel.app.uploads import check_content, other_kind, shown_as
from nearlabel.collection.queries import Asked, Query, queries
from nearlabel.common.arrays import Array, Tree

T = TypeVar("T")

_FORM, _JSON = "multipart/form-data", "application/json"
_FILES = ("file", "picture")  # accepted names of the file field of a form
_PART = {"type": "string", "format": "binary"}


class Posted(NamedTuple):
    """The body of a request: JSON, or the content of a file."""

    json: bytes | None
    content: bytes = b""
    name: str = ""  # the client's name of the file: for display, never a path
    tags: tuple[str, ...] = ()  # from further fields of a form


def body_of(model: str) -> Tree:
    """The OpenAPI description of a body that is JSON or a file."""
    form = {"type": "object", "required": ["file"], "properties": {"file": _PART}}
    if model == "NewContent":
        tags = {"type": "array", "items": {"$ref": "#/components/schemas/Tag"}}
        form["properties"] = {"file": _PART, "tags": {**tags, "maxItems": 1000}}
    return {
        "requestBody": {
            "required": True,
            "content": {
                _JSON: {"schema": {"$ref": f"#/components/schemas/{model}"}},
                _FORM: {"schema": form},
                "image/*": {"schema": _PART},
                "text/plain": {"schema": {"type": "string"}},
            },
        }
    }


async def posted(request: Request) -> Posted:
    """Read the body of a request."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == _JSON:
        return Posted(await request.body())
    if kind == _FORM:
        async with request.form(max_files=1, max_fields=1000, max_part_size=2**16) as form:
            given = [value for name in _FILES for value in form.getlist(name)]
            files = [value for value in given if isinstance(value, UploadFile)]
            if not files:
                raise Refusal(422, "file: a form must have exactly one file")
            unknown = {*form} - {*_FILES, "tags"}
            if unknown:
                raise Refusal(422, "a form may only have the fields file and tags")
            tags = tuple(str(tag) for tag in form.getlist("tags"))
            return Posted(None, await files[0].read(), files[0].filename or "", tags)
    if kind.startswith("image/") or kind in ("application/octet-stream", "text/plain"):
        return Posted(None, await request.body())
    raise Refusal(415, f"send {_JSON}, {_FORM}, or a picture as image/jpeg")


async def answered(served: Served, body: Posted, answer: Callable[[Query, int | None], T]) -> T:
    """The answer to a request, from one state of the collection, computed in a thread.

    `answer` takes the query, and how many results a body of JSON asks for.
    """

    def work() -> T:
        asked, top = _asked(served, body)
        query = query_about(served, asked)
        if not query.name:
            query = query._replace(name=shown_as(body.name))
        with served.answering():
            if query.item is not None:  # its current state
                query = query_about(served, query.item.id)
            return answer(query, top)

    return await run_in_threadpool(work)


def query_about(served: Served, asked: Asked) -> Query:
    """The query about an item, a vector, or the content of a file."""
    answers, unread = queries(served.collection, [asked], served.vectors_of)
    for error in unread:
        raise error
    return answers[0]


def _asked(served: Served, body: Posted) -> tuple[Asked, int | None]:
    """What a request asks about, and how many results it wants, if it says so."""
    if body.json is None:
        check_content(served, body.content)
        return body.content, None
    asked = ItemQuery.model_validate_json(body.json)
    given = [name for name in ("id", "vector", "text") if getattr(asked, name) is not None]
    if len(given) != 1:
        raise Refusal(422, "exactly one of id, vector and text is required")
    if asked.id is not None:
        return asked.id, asked.top
    if given[0] != served.kind.removesuffix("s"):
        raise other_kind(served)
    if asked.text is not None:
        content = asked.text.encode()
        check_content(served, content)
        return content, asked.top
    return vector_of(served, asked.vector or []), asked.top


def vector_of(served: Served, values: Sequence[float]) -> Array:
    """A vector that was sent, in the form of the collection's vectors."""
    width = served.collection.settings.width
    if width is not None and len(values) != width:
        raise Refusal(422, f"vector must have {width} numbers; got {len(values)}")
    with np.errstate(over="ignore"):
        vector = np.array(values, np.float32)
    if not np.isfinite(vector).all():
        raise Refusal(422, "vector has a number that is too large")
    return vector
