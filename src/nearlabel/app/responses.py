"""Error answers of the service: one format, with stable codes."""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field, ValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from nearlabel.collection.folder_checks import (
    NotInCollectionError,
    ReadOnlyError,
    TagTakenError,
)
from nearlabel.common.messages import one_line
from nearlabel.common.validation import ArgumentError, ArgumentTypeError
from nearlabel.features.pictures import PictureTooLarge, UnreadablePicture

CODES = {
    400: ("bad_request", "The request cannot be understood."),
    401: ("token_needed", "The token is missing or wrong."),
    403: ("refused", "The host, the site or the mode of the service does not allow this."),
    404: ("not_found", "There is no such item, tag or address."),
    405: ("method_not_allowed", "This address does not support the method."),
    408: ("too_slow", "The request did not arrive in time."),
    409: ("conflict", "The name is taken by another tag."),
    413: ("too_large", "The request has too many bytes, or the picture too many pixels."),
    415: (
        "unsupported",
        "This is not a picture in a known format, or an unknown content type.",
    ),
    422: ("invalid", "A value is missing or not valid."),
    500: ("internal", "An internal error of the service; see its log."),
    503: ("unavailable", "The service is overloaded or out of memory."),
    507: ("disk_full", "There is no space left on the disk."),
}
_log = logging.getLogger("nearlabel.service")


class ErrorDetail(BaseModel):
    """An error."""

    code: str = Field(description="for programs; stays the same")
    message: str = Field(description="for people; may change")


class ErrorBody(BaseModel):
    """The body of every answer with status 400 or above."""

    error: ErrorDetail


class Refusal(HTTPException):
    """A request that is refused with a status and a reason."""

    def __init__(
        self,
        status: int,
        message: str = "",
        code: str = "",
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(status, message or CODES[status][1], headers)
        self.code = code or CODES[status][0]


ERRORS: dict[int | str, dict[str, object]] = {
    status: {"model": ErrorBody, "description": meaning} for status, (_, meaning) in CODES.items()
}
"""The error answers of the interface, for its OpenAPI description."""


def refusal_of(error: Exception) -> Refusal:
    """The answer to a request that ended with an error."""
    if isinstance(error, Refusal):
        return error
    if isinstance(error, HTTPException):
        return Refusal(error.status_code, headers=dict(error.headers or {}) or None)
    if isinstance(error, RequestValidationError | ValidationError):
        return Refusal(422, _wrong_values(error))
    if isinstance(error, UnreadablePicture):
        status = 413 if isinstance(error, PictureTooLarge) else 415
        return Refusal(status, one_line(f"the file {error.reason}"))
    if isinstance(error, NotInCollectionError | TagTakenError):
        status = 404 if isinstance(error, NotInCollectionError) else 409
        return Refusal(status, f"the collection {error.reason}")
    if isinstance(error, ReadOnlyError):
        return Refusal(403, "the collection is served read-only", "readonly")
    if isinstance(error, ArgumentError | ArgumentTypeError):
        return Refusal(422, one_line(str(error)))
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return Refusal(507)
    if isinstance(error, MemoryError):
        return Refusal(503, "there is not enough memory for this")
    return Refusal(500)


def _wrong_values(error: RequestValidationError | ValidationError) -> str:
    """Which values are wrong, and what is accepted."""
    errors = error.errors()
    messages = []
    for problem in errors[:3]:
        place = ".".join(str(part) for part in problem["loc"] if part != "body")
        messages.append(f"{place or 'body'}: {problem['msg']}")
    rest = f"; and {len(errors) - 3} more" if len(errors) > 3 else ""
    return one_line("; ".join(messages) + rest)


def error_response(refusal: Refusal) -> JSONResponse:
    """A refusal as an answer."""
    body = ErrorBody(error=ErrorDetail(code=refusal.code, message=refusal.detail))
    return JSONResponse(body.model_dump(), refusal.status_code, refusal.headers)


def answer_to(error: Exception, path: str) -> JSONResponse:
    """The answer to a request that ended with an error; internal errors are logged."""
    refusal = refusal_of(error)
    if refusal.status_code >= 500 and not isinstance(error, Refusal):
        _log.error("a request failed", exc_info=error, extra={"path": path})
    return error_response(refusal)


def install_error_answers(app: FastAPI, page: Callable[[Refusal], Response]) -> None:
    """Answer all errors of an application in one format; `page` renders them for people."""

    async def answer(request: Request, error: Exception) -> Response:
        path = request.url.path
        if "text/html" in request.headers.get("accept", "") and not path.startswith("/api/"):
            refusal = refusal_of(error)
            if refusal.status_code < 500:
                return page(refusal)
        response = answer_to(error, path)
        if (
            response.status_code == 405
        ):  # the framework lists the methods of only one of several routes
            path = getattr(request.scope.get("route"), "path", "")
            if methods := app.openapi()["paths"].get(path):
                response.headers["Allow"] = ", ".join(methods).upper()
        return response

    kinds = (HTTPException, RequestValidationError, ValueError, TypeError, OSError, MemoryError)
    for kind in kinds:
        app.add_exception_handler(kind, answer)
