"""Who may use a service that has a token: programs send it, browsers get a cookie for it.

The cookie is made of the token, but does not contain it, and ends after a month.
"""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Mapping

SECONDS = 30 * 24 * 3600


def is_logged_in(headers: Mapping[str, str], token: str) -> bool:
    """Whether a request has the token, or a cookie that was made of it."""
    scheme, _, given = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return is_token(given.strip(), token)
    # By hand: one cookie in a strange form, as of another service on this machine, would have the
    # standard library ignore all of them.
    cookies = (one.strip().partition("=") for one in headers.get("cookie", "").split(";"))
    ours = cookie_name(headers)
    cookie = next((value for name, _, value in cookies if name == ours), "")
    end, _, _ = cookie.partition(".")
    if not (end.isascii() and end.isdigit() and len(end) < 15):
        return False
    is_ours = hmac.compare_digest(cookie.encode(), cookie_of(token, int(end)).encode())
    return is_ours and time.time() < int(end)


def is_token(given: str, token: str) -> bool:
    """Whether a token is the right one; how long that takes does not tell."""
    return hmac.compare_digest(given.encode("utf-8", "replace"), token.encode())


def cookie_name(headers: Mapping[str, str]) -> str:
    """The name of the cookie: with the port, as browsers give cookies to all ports of a host."""
    port = headers.get("host", "").rpartition(":")[2]
    return f"nearlabel-{port}" if port.isascii() and port.isdigit() else "nearlabel"


def cookie_of(token: str, end: int) -> str:
    """The cookie of a browser that has shown the token, until a time in seconds."""
    signed = hmac.new(token.encode(), f"nearlabel until {end}".encode(), hashlib.sha256)
    return f"{end}.{signed.hexdigest()}"
