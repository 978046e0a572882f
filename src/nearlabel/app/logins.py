"""Who may use a service with a token: programs send it, browsers get a cookie for it.

The cookie is derived from the token, but does not contain it, and expires after a month.
"""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Mapping

SECONDS = 30 * 24 * 3600


def is_logged_in(headers: Mapping[str, str], token: str) -> bool:
    """Whether a request has the token, or a cookie derived from it."""
    scheme, _, given = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return is_token(given.strip(), token)
    # Parsed by hand: a single malformed cookie, as of another service on this machine, would make
    # the standard library ignore all of them.
    cookies = (cookie.strip().partition("=") for cookie in headers.get("cookie", "").split(";"))
    ours = cookie_name(headers)
    cookie = next((value for name, _, value in cookies if name == ours), "")
    end, _, _ = cookie.partition(".")
    if not (end.isascii() and end.isdigit() and len(end) < 15):
        return False
    is_ours = hmac.compare_digest(cookie.encode(), cookie_of(token, int(end)).encode())
    return is_ours and time.time() < int(end)


def is_token(given: str, token: str) -> bool:
    """Whether a token is correct, compared in constant time."""
    return hmac.compare_digest(given.encode("utf-8", "replace"), token.encode())


def cookie_name(headers: Mapping[str, str]) -> str:
    """The name of the cookie, including the port, since browsers share cookies between ports."""
    port = headers.get("host", "").rpartition(":")[2]
    return f"nearlabel-{port}" if port.isascii() and port.isdigit() else "nearlabel"


def cookie_of(token: str, end: int) -> str:
    """The cookie for a browser that has sent the token, valid until a time in seconds."""
    signed = hmac.new(token.encode(), f"nearlabel until {end}".encode(), hashlib.sha256)
    return f"{end}.{signed.hexdigest()}"
