"""What a request asks about or uploads: an item, a vector, a text, or the content of a file."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

import numpy as np
from fastapi import Request
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile

from nearlabel.app.api_models import ItemQuery
from nearlabel.app.responses import Refusal
from nearlabel.app.served import Served
from nearlabel.app.uploads import check_content, shown_as, text_content
from nearlabel.collection import Item
from nearlabel.common.arrays import Array, Matrix, Tree

T = TypeVar("T")

_FORM, _JSON = "multipart/form-data", "application/json"
_FILES = ("file", "picture")  # accepted names of the file field of a form
_PART = {"type": "string", "format": "binary"}


class Posted(NamedTuple):
    """The body of a request.

    Attributes
    ----------
    json : bytes or None
    content : bytes
        The content of a file, if there is no JSON.
    name : str
        The client's name of that file: for display, never a path.
    tags : list of str
        From further fields of a form.
    """

    json: bytes | None
    content: bytes = b""
    name: str = ""
    tags: tuple[str, ...] = ()


class Query(NamedTuple):
    """A query.

    Attributes
    ----------
    question : int or array
        What `suggest` and similar methods of a collection take.
    item : Item or None
        The item of the collection, if it is one.
    name : str
    top : int or None
    """

    question: int | Matrix
    item: Item | None
    name: str
    top: int | None = None


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


def query_of(served: Served, body: Posted) -> Query:
    """The query of a request."""
    if body.json is None:
        return query_of_file(served, body.content, body.name)
    asked = ItemQuery.model_validate_json(body.json)
    given = [name for name in ("id", "vector", "text") if getattr(asked, name) is not None]
    if len(given) != 1:
        raise Refusal(422, "exactly one of id, vector and text is required")
    if asked.id is not None:
        return query_of_item(served, asked.id, asked.top)
    if given[0] != served.kind.removesuffix("s"):
        raise Refusal(422, f"{given[0]}: this collection holds {served.kind}: {_instead(served)}")
    if asked.text is not None:
        return query_of_file(served, text_content(asked.text), "", asked.top)
    return Query(vector_of(served, asked.vector or []), None, "", asked.top)


async def answered(served: Served, body: Posted, answer: Callable[[Query], T]) -> T:
    """The answer to a request, from one state of the collection, computed in a thread."""

    def work() -> T:
        query = query_of(served, body)
        with served.answering():
            if query.item is not None:  # its current state
                query = query_of_item(served, query.item.id, query.top)
            return answer(query)

    return await run_in_threadpool(work)


def query_of_item(served: Served, id: int, top: int | None = None) -> Query:
    """The query for an item of the collection."""
    item = served.collection.item(id)
    return Query(item.id, item, item.shown_name, top)


def query_of_file(served: Served, content: bytes, name: str, top: int | None = None) -> Query:
    """The query for the content of a file, which may be an item of the collection."""
    check_content(served, content)
    digest = hashlib.sha256(content).digest()
    known = served.collection.known_contents([digest]).get(digest)
    if known is not None:
        return query_of_item(served, known, top)
    return Query(served.vector_of(content), None, shown_as(name), top)


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


def _instead(served: Served) -> str:
    if served.kind == "pictures":
        return "send a picture"
    return f'send {{"{served.kind.removesuffix("s")}": …}}'
