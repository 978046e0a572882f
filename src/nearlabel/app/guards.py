"""What is checked before a request reaches the service: its origin, host name and size.

A page of any other site can send requests to this machine through a visitor's browser. So the host
must be one of ours, against DNS rebinding, and requests that change something must come from our
own page, or from a program, which sends no origin.
"""

from __future__ import annotations

import asyncio
import ipaddress
import time
from collections.abc import Mapping
from urllib.parse import quote, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from nearlabel.app.logins import is_logged_in
from nearlabel.app.responses import Refusal, answer_to, error_response
from nearlabel.app.service_settings import ServiceSettings, is_loopback

HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; "
        "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",  # no-referrer would also hide the origin of a form
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
_SLOWEST = 50_000  # minimum bytes per second of a large request
_MOST_LOGIN = 2**14  # bytes: anybody may send a login, and its form is parsed by the event loop


class Guard:
    """Refuses requests that must not reach an application; adds security headers to answers."""

    def __init__(self, app: ASGIApp, settings: ServiceSettings) -> None:
        self._app, self._settings = app, settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        headers, is_begun = Headers(scope=scope), False

        async def send_guarded(message: Message) -> None:
            nonlocal is_begun
            if message["type"] == "http.response.start":
                is_begun, headers = True, MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                headers.setdefault("cache-control", "private, no-cache")
            await send(message)

        answer = self._refused(scope, headers)
        if answer is not None:
            await answer(scope, receive, send_guarded)
            return
        try:
            await self._app(scope, self._limited(receive, self._most(scope["path"])), send_guarded)
        except Exception as error:  # not handled inside
            if is_begun:
                raise
            await answer_to(error, scope["path"])(scope, receive, send_guarded)

    def _refused(self, scope: Scope, headers: Headers) -> Response | None:
        """The answer to a request that is refused or redirected; None if it may pass."""
        settings, path = self._settings, scope["path"]
        try:
            check_host(headers, settings)
            check_site(scope["method"], headers)
            check_size(headers, self._most(path))
            if settings.token is None or path.startswith(("/login", "/static/", "/api/health")):
                return None
            if is_logged_in(headers, settings.token):
                return None
            if "text/html" in headers.get("accept", "") and not path.startswith("/api/"):
                query = f"?{scope['query_string'].decode('latin-1')}".rstrip("?")
                return RedirectResponse(f"/login?next={quote(path + query, safe='')}", 303)
            raise Refusal(401, headers={"WWW-Authenticate": "Bearer"})
        except Refusal as refusal:
            return error_response(refusal)

    def _most(self, path: str) -> int:
        most = self._settings.most_bytes
        return min(most, _MOST_LOGIN) if path == "/login" else most

    def _limited(self, receive: Receive, most: int) -> Receive:
        """Receive a body, within the limits on size and time."""
        settings, begin, size = self._settings, time.monotonic(), 0

        async def receive_limited() -> Message:
            nonlocal size
            left = settings.seconds + size / _SLOWEST - (time.monotonic() - begin)
            try:
                message = await asyncio.wait_for(receive(), max(left, 0.001))
            except TimeoutError:
                raise Refusal(408, headers={"Connection": "close"}) from None
            size += len(message.get("body", b""))
            if size > most:
                raise _too_large(most)
            return message

        return receive_limited


def check_host(headers: Mapping[str, str], settings: ServiceSettings) -> None:
    """Refuse a host name that this service is not known by."""
    given = headers.get("host", "")
    try:
        host = urlsplit(f"//{given}").hostname or ""
    except ValueError:
        host = ""
    if host == "localhost" or host in settings.names or host == settings.host.lower():
        return
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        raise Refusal(
            403,
            "this service is not known by that name; to allow it, start the service with "
            "--allow-host NAME",
            "host_refused",
        ) from None
    if is_loopback(settings.host) and not address.is_loopback:
        raise Refusal(403, "this service has another address", "host_refused")


def check_site(method: str, headers: Mapping[str, str]) -> None:
    """Refuse requests from pages of other sites, except following a link to here."""
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    is_foreign = site in ("cross-site", "same-site")
    if method in ("GET", "HEAD", "OPTIONS"):
        if is_foreign and headers.get("sec-fetch-mode") != "navigate":
            raise Refusal(403, "other sites may not read this", "origin_refused")
        return
    if origin is not None:
        is_foreign |= origin.partition("://")[2].lower() != headers.get("host", "").lower()
    if is_foreign:
        raise Refusal(403, "other sites may not change anything here", "origin_refused")


def check_size(headers: Mapping[str, str], most: int) -> None:
    """Refuse a body whose declared length is too large, before it is sent."""
    length = headers.get("content-length", "0")
    if not (length.isascii() and length.isdigit()):
        raise Refusal(400, "Content-Length is not a number")
    if len(length) > 18 or int(length) > most:
        raise _too_large(most)


def _too_large(most: int) -> Refusal:
    limit = f"{most / 2**20:.0f} MiB" if most >= 2**20 else f"{most:,} bytes"
    headers = {"Connection": "close"}
    return Refusal(413, f"the request is too large: at most {limit}", headers=headers)
