"""How a service is reached, and what it accepts."""

from __future__ import annotations

import ipaddress
import os
import secrets
import stat
from dataclasses import dataclass
from pathlib import Path

SHORTEST_TOKEN = 16
TOKEN_VARIABLE = "NEARLABEL_TOKEN"
_MOST_TOKEN = 4096


@dataclass(frozen=True)
class ServiceSettings:
    """Settings shared by the parts of a service."""

    uploads: Path  # folder for uploaded pictures and texts
    host: str = "127.0.0.1"  # the address to listen on
    names: frozenset[str] = frozenset()  # further host names, as behind a proxy
    token: str | None = None  # that clients must send
    most_bytes: int = 64 * 2**20  # of a request
    most_pixels: int = 50_000_000  # of an uploaded picture
    seconds: float = 20.0  # for a request to arrive; longer for a large one
    follows_folders: bool = False

    def __post_init__(self) -> None:
        if self.token is None and not is_loopback(self.host):
            raise ValueError(
                f"{self.host} can be reached by other machines, so a token is needed: pass "
                f"--token-file FILE, which is created if it does not exist, or set {TOKEN_VARIABLE}"
            )
        token = self.token or ""
        if self.token is not None and len(token) < SHORTEST_TOKEN:
            raise ValueError(f"a token must have at least {SHORTEST_TOKEN} characters")
        is_plain = token.isascii() and token.isprintable() and " " not in token
        if len(token) > _MOST_TOKEN or not is_plain:
            raise ValueError(
                "a token must consist of ASCII letters, digits and punctuation, without spaces"
            )


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def token_of(path: str | None) -> str | None:
    """The token in a file, which is created if it does not exist; otherwise from the environment.

    The variable is removed, so that child processes do not inherit it.
    """
    given = os.environ.pop(TOKEN_VARIABLE, None)
    if path is None:
        return given or None
    file = Path(path)
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        if not stat.S_ISREG(file.stat().st_mode):
            raise ValueError(f"--token-file {path} is not a file") from None
        # A credential of systemd is private to this service, whatever its mode.
        folder = os.environ.get("CREDENTIALS_DIRECTORY")
        is_private = folder and file.resolve().parent == Path(folder).resolve()
        is_open = os.name == "posix" and file.stat().st_mode & (stat.S_IRGRP | stat.S_IROTH)
        if is_open and not is_private:
            raise ValueError(
                f"--token-file {path} can be read by other users: chmod 600 {path}"
            ) from None
        with file.open(encoding="utf-8") as opened:
            return opened.read(_MOST_TOKEN + 2).strip()
    with os.fdopen(descriptor, "w", encoding="utf-8") as created:
        token = secrets.token_urlsafe(32)
        created.write(token + "\n")
    return token
